"""Tests that a failed download is reported and leaves nothing in the cache."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pooch
import pytest

from transformer import CorpusError, load_corpus
from transformer.data.corpora import SOURCES, CorpusSource, is_at_hand

TEXT = "Aquí me pongo a cantar\nal compás de la vigüela.\n" * 2000
CONTENT = TEXT.encode()


class Server(BaseHTTPRequestHandler):
    """Answers as the path says."""

    def do_GET(self):
        what = self.path.strip("/")
        self.send_response({"missing": 404, "broken": 500}.get(what, 200))
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        if what == "cut-short":
            self.wfile.write(CONTENT[: len(CONTENT) // 2])
        elif what == "damaged":
            self.wfile.write(CONTENT[:-1] + b"!")
        else:
            self.wfile.write(CONTENT)

    def log_message(self, *arguments):
        """Be quiet."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
    monkeypatch.delenv("HEADSUP_CORPORA", raising=False)
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "cache"


def register(monkeypatch, url: str) -> None:
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    source = CorpusSource("small", "A small text", "Spanish", "public domain", 0.75, "small.txt", url, sha256)
    monkeypatch.setitem(SOURCES, "small", source)


def files(folder) -> list:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("what", ["missing", "broken", "cut-short", "damaged"])
def test_what_goes_wrong_leaves_nothing_behind(monkeypatch, address, cache, what):
    register(monkeypatch, f"{address}/{what}")
    with pytest.raises(CorpusError, match=r"could not be downloaded from .*small\.txt.*HEADSUP_CORPORA"):
        load_corpus("small")
    assert files(cache) == []
    assert not is_at_hand("small")


def test_nobody_answers(monkeypatch, address, cache):
    register(monkeypatch, "http://127.0.0.1:9/small.txt")
    with pytest.raises(CorpusError, match="ConnectionError"):
        load_corpus("small")
    assert files(cache) == []


def test_after_a_failure_it_can_be_tried_again(monkeypatch, address, cache):
    register(monkeypatch, f"{address}/cut-short")
    with pytest.raises(CorpusError):
        load_corpus("small")
    register(monkeypatch, f"{address}/good")
    assert load_corpus("small").text == TEXT
    assert [path.name for path in files(cache)] == ["small.txt"]
    assert is_at_hand("small")


@pytest.mark.parametrize("what", ["cut-short", "damaged"])
def test_a_good_file_that_is_there_is_not_lost(monkeypatch, address, cache, what):
    register(monkeypatch, f"{address}/good")
    load_corpus("small")
    register(monkeypatch, f"{address}/{what}")
    assert load_corpus("small").text == TEXT
