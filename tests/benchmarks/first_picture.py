"""Benchmarks the first picture of the static site, in a Chromium that was never there.

Of each page the milliseconds from the navigation to the picture, and the bytes fetched until then, as a host sends them
that compresses nothing, and by gzip. From this machine; by a line of 10 Mbit/s with 40 ms to and fro; and by that line
with a processor a quarter as fast, as in a Chromebook. Medians. `slowest` names the files that came last, in one run.

The targets: 2 seconds, and 1.5 MB.
"""

from __future__ import annotations

import functools
import gzip
import json
import statistics
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pages.ui.views.learn.site_lessons import lesson_named, site_document
from transformer import load_checkpoint
from transformer.checkpoints.folder import list_checkpoints
from transformer.frontend.site import write_site

from .chromium import NOTE_DRAWN, chromium
from .measuring import machine, print_table

CHECKPOINTS = Path(__file__).resolve().parents[2] / "checkpoints"
PAGES = {"Generate": "", "Attention": "Attention/", "Inside": "Inside/"}
SHOWN = "[data-part=root][data-state=shown]"
LINE = {"offline": False, "latency": 40, "downloadThroughput": 10e6 / 8, "uploadThroughput": 10e6 / 8}
SLOWER = 4
WAYS = {"here": (False, 1), "line": (True, 1), "line_slow": (True, SLOWER)}
"""Whether by the line, and how much slower the processor is."""
COMPRESSED = (".html", ".js", ".css", ".json", ".webmanifest")
"""Files that hosts compress."""
TARGETS = {"milliseconds": 2_000, "bytes": 1_500_000}


class Host(SimpleHTTPRequestHandler):
    """A host that compresses texts, as most do, or nothing."""

    protocol_version = "HTTP/1.1"
    compresses = False

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        """A file of the folder."""
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        data = path.read_bytes() if path.is_file() else b""
        self.send_response(200 if data else 404)
        if self.compresses and path.suffix in COMPRESSED:
            data = gzip.compress(data, 6)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class CompressingHost(Host):
    """One that compresses."""

    compresses = True


def run(quick: bool = False) -> dict:
    """Measure, print the table, and return every figure."""
    figures: dict[str, Any] = {}
    rows = []
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        shipped = [entry.path for entry in list_checkpoints(CHECKPOINTS) if entry.problem is None]
        course = [site_document(lesson_named("06-queries-keys-values"))]
        write_site(Path(folder), {path.name: load_checkpoint(path) for path in shipped}, course)
        for kind, host in (("plain", Host), ("gzip", CompressingHost)):
            with _served(folder, host) as site:
                for page, address in PAGES.items():
                    for way, (is_line, slower) in WAYS.items():
                        found = [
                            _opened(browser, f"{site}{address}", is_line, slower) for _ in range(3 if quick else 7)
                        ]
                        name = f"{page}_{way}_{kind}"
                        figures[name] = round(statistics.median(each["milliseconds"] for each in found))
                        figures[f"{page}_bytes_{kind}"] = found[0]["bytes"]
                        figures[f"{name}_slowest"] = found[0]["slowest"]
                        worst = max(each["milliseconds"] for each in found)
                        size = f"{found[0]['bytes'] / 1e3:,.0f}"
                        rows.append((f"{page}, {way}, {kind}", f"{figures[name]:,}", f"{worst:,.0f}", size))
    print_table(("page, way, host", "ms", "worst", "kB"), rows)
    return {**figures, "targets": TARGETS, "machine": machine()}


def _opened(browser: Any, address: str, is_line: bool, slower: float) -> dict[str, Any]:
    """Milliseconds until the picture is there, the bytes until then, and when each file had come."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    if is_line:
        session.send("Network.emulateNetworkConditions", LINE)
    session.send("Emulation.setCPUThrottlingRate", {"rate": slower})
    page.add_init_script(f"({NOTE_DRAWN})({json.dumps(SHOWN)})")
    page.goto(address, wait_until="commit")
    page.wait_for_function("window.drawnAt", timeout=60_000)
    found = page.evaluate(
        """() => ({
          milliseconds: window.drawnAt,
          files: [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
            .filter(({ responseEnd }) => responseEnd <= window.drawnAt)
            .map((file) => [file.name.split("/").pop(), file.startTime, file.responseEnd, file.transferSize]),
        })"""
    )
    context.close()
    last = sorted(found["files"], key=lambda file: -file[2])[:4]
    slowest = [f"{name} {round(begin)}–{round(end)}" for name, begin, end, _ in last]
    size = sum(file[3] for file in found["files"])
    return {"milliseconds": found["milliseconds"], "bytes": size, "slowest": slowest}


@contextmanager
def _served(folder: str, host: type[Host]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(host, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
