"""Tests training texts: found, cached, downloaded and verified, or a visitor's own; a failure is a sentence."""

import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pooch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer import CorpusError, load_corpus
from transformer.data.corpora import LONGEST_TEXT, MOST_CHARACTERS, SOURCES, CorpusSource, is_at_hand, text_corpus

PAGE = "Aquí me pongo a cantar\nal compás de la vigüela.\n" * 30
TEXT = PAGE.replace("\n", "\r\n") * 60
CONTENT = TEXT.encode()


@pytest.fixture
def served(monkeypatch, tmp_path) -> Iterator[Path]:
    """What is sent to who downloads the small text."""
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "HEADSUP_CORPORA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder = put(tmp_path / "served")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=folder))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}/small.txt"
    about = ("small", "A small text", "Spanish", "public domain", 0.75, "small.txt")
    monkeypatch.setitem(SOURCES, "small", CorpusSource(*about, url, hashlib.sha256(CONTENT).hexdigest()))
    yield folder / "small.txt"
    server.shutdown()
    server.server_close()
    thread.join()


def put(folder: Path, content: bytes = CONTENT) -> Path:
    folder.mkdir()
    (folder / "small.txt").write_bytes(content)
    return folder


def test_a_text_is_found_in_the_folder_that_is_named_and_then_in_that_of_the_environment(served, tmp_path, monkeypatch):
    corpus = load_corpus("small", put(tmp_path / "mine"))
    served.unlink()  # and nothing is downloaded
    train, validation = corpus.split()
    assert corpus.text == train + validation == TEXT  # line ends as they are, too
    assert len(train) == int(0.75 * len(TEXT)) and corpus.sha256 == SOURCES["small"].sha256
    assert is_at_hand("small", tmp_path / "mine") and not is_at_hand("small")
    monkeypatch.setenv("HEADSUP_CORPORA", str(tmp_path / "mine"))
    for folder in (None, tmp_path / "nothing here"):
        assert load_corpus("small", folder).text == TEXT and is_at_hand("small", folder)
    monkeypatch.setenv("HEADSUP_CORPORA", str(put(tmp_path / "damaged", b"another text")))
    assert load_corpus("small", tmp_path / "mine").text == TEXT
    with pytest.raises(CorpusError, match=r"small\.txt in .* is not the file it should be .*SHA-256.*127\.0\.0\.1"):
        load_corpus("small")
    with pytest.raises(CorpusError, match="There is no corpus 'large'; there are tiny-shakespeare, "):
        load_corpus("large")


def test_else_it_is_downloaded_once_and_then_cached(served, tmp_path):
    reports, cached = [], tmp_path / "cache/headsup/small.txt"
    load_corpus("small", progress=lambda received, expected: reports.append((received, expected)))
    assert 0 < reports[0][0] < len(CONTENT) and reports[-1] == (len(CONTENT), len(CONTENT))
    assert {expected for _, expected in reports} == {len(CONTENT)}
    cached.write_text("damaged")
    assert load_corpus("small").text == TEXT
    served.unlink()
    assert load_corpus("small").text == load_corpus("small", tmp_path / "nothing here").text == TEXT
    assert [*cached.parent.iterdir()] == [cached] and is_at_hand("small")


@pytest.mark.parametrize("sent", [None, CONTENT[: len(CONTENT) // 2], CONTENT[:-1] + b"!"])
def test_a_download_that_goes_wrong_leaves_nothing_behind(served, tmp_path, sent):
    served.write_bytes(sent) if sent else served.unlink()
    with pytest.raises(CorpusError, match=r"could not be downloaded from .*small\.txt into a folder.*_CORPORA"):
        load_corpus("small")
    assert [*(tmp_path / "cache").glob("*/*")] == [] and not is_at_hand("small")
    served.write_bytes(CONTENT)
    assert load_corpus("small").text == TEXT


def test_every_source_says_what_it_is_and_the_manual_of_python_is_always_there():
    for name, each in SOURCES.items():
        assert each.name == name and each.title and each.language and each.licence
        assert 0.5 < each.train_fraction < 1
        assert bool(each.url or each.made) == bool(each.file_name) == (len(each.sha256) == 64)
    corpus = load_corpus("python-manual")
    assert len(corpus.text) > 300_000 and len(corpus.split()[0]) == int(0.9 * len(corpus.text))
    assert corpus.sha256 == load_corpus("python-manual").sha256 and is_at_hand("python-manual")


class TestOwnTexts:
    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    def test_wherever_it_was_written_it_is_the_same(self, end):
        typed = PAGE.replace("\n", end)
        for content in (typed, typed.encode(), b"\xef\xbb\xbf" + typed.encode(), "\ufeff" + typed):
            assert text_corpus(content, "Mine").text == PAGE
        assert text_corpus("\ud800" + typed, "Mine").text == "?" + PAGE
        corpus = text_corpus(typed, "Mine")
        source = corpus.source
        assert (source.name, source.title, source.licence, source.url) == ("own-text", "Mine", "yours", "")
        train, validation = corpus.split()
        assert train + validation == PAGE and len(train) == int(0.9 * len(PAGE))

    def test_the_smallest_and_the_largest(self):
        assert len(text_corpus("ab" * 500, "").text) == 1_000
        assert len(text_corpus(b"ab" * (LONGEST_TEXT // 2), "").text) == LONGEST_TEXT
        alphabet = "".join(chr(200 + i) for i in range(MOST_CHARACTERS))
        assert len(set(text_corpus(alphabet * 3, "").text)) == MOST_CHARACTERS

    @given(st.binary(max_size=20) | st.text(max_size=20))
    def test_anything_is_a_text_or_is_refused(self, start):
        try:
            corpus = text_corpus(start + (PAGE if isinstance(start, str) else PAGE.encode()), "Mine")
        except CorpusError:
            return
        assert "\r" not in corpus.text and "\0" not in corpus.text
        assert corpus.text.encode().decode() == corpus.text

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            *((content, "bytes of text, about half a page; found ") for content in ("", b"", "ab" * 499)),
            (b"ab" * 499 + b"\r\n", "at least 1,000 bytes of text, about half a page; found 999 bytes"),
            (b"a" * (LONGEST_TEXT + 1), "at most 5,000,000 bytes of text; found 5,000,001 bytes"),
            ("é" * (LONGEST_TEXT // 2 + 1), "5,000,002 bytes"),
            *(
                (content, "Expected a plain text in UTF-8; found ")
                for content in (PAGE.encode("latin-1"), b"\x89PNG\r\n\x1a\n" * 200, b"PK\3\4\xff" * 300)
            ),
            (PAGE.encode("utf-16"), "found a text in UTF-16"),
            *((content, "") for content in ("ab\0" * 500, PAGE.encode("utf-16-le") * 2, bytes(2_000))),
            ("a" * 2_000, "one character"),
            ("".join(map(chr, range(0x4E00, 0x4E00 + 401))) * 2, "401 different characters"),
        ],
        ids=range(15),
    )
    def test_what_can_t_be_learned_from_is_refused_in_a_sentence(self, content, words):
        with pytest.raises(CorpusError) as caught:
            text_corpus(content, "Mine")
        message = str(caught.value)
        assert words in message
        assert message[0].isupper() and message.endswith(".") and message.count(". ") == 0
