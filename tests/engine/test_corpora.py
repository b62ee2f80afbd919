"""Tests how corpora are found, cached, downloaded and verified."""

import hashlib
import socket
from pathlib import Path

import pooch
import pytest

from transformer import CorpusError, load_corpus
from transformer.data.corpora import SOURCES, CorpusSource

TEXT = "Aquí me pongo a cantar\r\nal compás de la vigüela.\n" * 4


def source(**fields) -> CorpusSource:
    return CorpusSource(
        **{
            "name": "small",
            "title": "A small text",
            "language": "Spanish",
            "licence": "public domain",
            "train_fraction": 0.75,
            "file_name": "small.txt",
            "url": "https://example.org/small.txt",
            "sha256": hashlib.sha256(TEXT.encode()).hexdigest(),
            **fields,
        }
    )


@pytest.fixture(autouse=True)
def small_corpus_and_no_network(monkeypatch, tmp_path):
    def refuse(*args, **kwargs):
        raise OSError("no network in tests")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
    monkeypatch.setitem(SOURCES, "small", source())
    monkeypatch.delenv("HEADSUP_CORPORA", raising=False)


@pytest.fixture
def downloads(monkeypatch) -> list[str]:
    """What was downloaded. Pooch runs as it is, but for the part of it that talks to the network."""
    urls: list[str] = []

    class Downloader:
        def __init__(self, progressbar, timeout):
            self.progressbar = progressbar
            assert timeout

        def __call__(self, url, output_file, pooch):
            urls.append(url)
            content = TEXT.encode()
            if self.progressbar:  # as pooch.HTTPDownloader drives it
                self.progressbar.total = len(content)
                self.progressbar.update(100)
                self.progressbar.update(len(content) - 100)
                self.progressbar.reset()
                self.progressbar.update(len(content))
                self.progressbar.close()
            if isinstance(output_file, str | Path):
                Path(output_file).write_bytes(content)
            else:
                output_file.write(content)

    monkeypatch.setattr(pooch, "HTTPDownloader", Downloader)
    return urls


def put(folder: Path, text: str = TEXT) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "small.txt").write_bytes(text.encode())
    return folder


class TestWhereItIsFound:
    def test_in_the_folder_that_is_named(self, tmp_path, downloads):
        corpus = load_corpus("small", put(tmp_path / "mine"))
        assert corpus.text == TEXT
        assert corpus.sha256 == SOURCES["small"].sha256
        assert downloads == []

    def test_in_the_folder_of_the_environment(self, tmp_path, monkeypatch, downloads):
        monkeypatch.setenv("HEADSUP_CORPORA", str(put(tmp_path / "mine")))
        assert load_corpus("small").text == TEXT
        assert load_corpus("small", tmp_path / "nothing here").text == TEXT
        assert downloads == []

    def test_the_folder_that_is_named_comes_before_that_of_the_environment(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HEADSUP_CORPORA", str(put(tmp_path / "damaged", "another text")))
        assert load_corpus("small", put(tmp_path / "mine")).text == TEXT

    def test_else_it_is_downloaded_once_and_then_cached(self, tmp_path, downloads):
        assert load_corpus("small", tmp_path / "nothing here").text == TEXT  # line ends as they are, too
        assert load_corpus("small").text == TEXT
        assert downloads == ["https://example.org/small.txt"]
        assert (tmp_path / "cache/headsup/small.txt").is_file()

    def test_a_damaged_cache_is_downloaded_again(self, tmp_path, downloads):
        load_corpus("small")
        (tmp_path / "cache/headsup/small.txt").write_text("damaged")
        assert load_corpus("small").text == TEXT
        assert len(downloads) == 2

    def test_a_download_reports_its_progress(self, downloads):
        reports = []
        load_corpus("small", progress=lambda received, expected: reports.append((received, expected)))
        size = len(TEXT.encode())
        assert reports == [(100, size), (size, size), (size, size)]


class TestWhatGoesWrong:
    def test_a_file_with_another_checksum_is_refused(self, tmp_path, downloads):
        with pytest.raises(CorpusError, match=r"small\.txt in .* is not the file it should be .*SHA-256.*example\.org"):
            load_corpus("small", put(tmp_path / "mine", TEXT + " "))
        assert downloads == []

    def test_a_download_with_another_checksum_is_refused_and_not_kept(self, tmp_path, monkeypatch, downloads):
        monkeypatch.setitem(SOURCES, "small", source(sha256="0" * 64))
        with pytest.raises(CorpusError, match="could not be downloaded"):
            load_corpus("small")
        assert not (tmp_path / "cache/headsup/small.txt").exists()

    def test_without_a_network_it_says_what_would_help(self):
        with pytest.raises(CorpusError, match=r"Check the network, or put small\.txt into a folder.*HEADSUP_CORPORA"):
            load_corpus("small")

    def test_an_unknown_name_lists_the_known_ones(self):
        with pytest.raises(CorpusError, match=r"no corpus 'bible'; there are tiny-shakespeare, .*python-manual"):
            load_corpus("bible")


class TestSplit:
    def test_it_is_at_a_fraction_of_the_characters_and_loses_none(self, tmp_path):
        corpus = load_corpus("small", put(tmp_path / "mine"))
        train, validation = corpus.split()
        assert train + validation == TEXT
        assert len(train) == int(0.75 * len(TEXT))

    def test_the_manual_of_python_is_always_there(self):
        corpus = load_corpus("python-manual")
        train, validation = corpus.split()
        assert len(corpus.text) > 300_000
        assert train + validation == corpus.text
        assert len(train) == int(0.9 * len(corpus.text))
        assert corpus.sha256 == load_corpus("python-manual").sha256

    def test_every_source_says_what_it_is(self):
        for name, each in SOURCES.items():
            assert each.name == name
            assert each.title and each.language and each.licence
            assert 0.5 < each.train_fraction < 1
            assert bool(each.url) == bool(each.file_name) == (len(each.sha256) == 64)
