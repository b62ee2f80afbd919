"""Serves pages of another origin, which frame the app."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OUTER = """<!doctype html><iframe src="{}" width="800" height="500"></iframe><script>addEventListener("message",
({{ data }}) => {{ if (data.type === "SET_QUERY_PARAM") window.told = data.queryParams; }});</script>"""


@contextmanager
def learning_platform() -> Iterator[str]:
    """A server whose pages frame the address that their own has after its question mark."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(OUTER.format(self.path.partition("?")[2]).encode())

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_port}"
    finally:
        server.shutdown()
