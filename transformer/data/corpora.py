"""Training texts: found on disk, downloaded once and verified, or supplied by the user.

One is always available, even offline: the manual that ships with Python.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .disk_errors import disk_problem
from .file_kinds import file_kind

FOLDER_VARIABLE = "HEADSUP_CORPORA"
SHORTEST_TEXT, LONGEST_TEXT = 1_000, 5_000_000
"""The largest user's text, in bytes of UTF-8."""
MOST_CHARACTERS = 400
"""The most distinct characters in it: each takes a row of the model's tables, and rare ones aren't learned."""


class CorpusError(Exception):
    """A corpus is not available; the message says why, and what would help."""


@dataclass(frozen=True)
class CorpusSource:
    """Where a corpus comes from, and how it is split."""

    name: str
    title: str
    language: str
    licence: str
    train_fraction: float
    """The share of the characters, from the start, to train on; the rest is for validation."""
    file_name: str = ""
    url: str = ""
    sha256: str = ""
    made: str = ""
    """How to make the file, where it can't be downloaded."""


@dataclass(frozen=True)
class Corpus:
    """A text, and the two parts it is split into."""

    source: CorpusSource
    text: str

    @property
    def sha256(self) -> str:
        """The SHA-256 of the text as UTF-8."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def split(self) -> tuple[str, str]:
        """The part to train on and the part to validate on."""
        at = int(len(self.text) * self.source.train_fraction)
        return self.text[:at], self.text[at:]


SOURCES = {
    source.name: source
    for source in (
        CorpusSource(
            name="tiny-shakespeare",
            title="Tiny Shakespeare: scenes from the plays",
            language="English",
            licence="public domain",
            train_fraction=0.9,
            file_name="tiny_shakespeare.txt",
            url="https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
            sha256="86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
        ),
        CorpusSource(
            name="martin-fierro",
            title="José Hernández: Martín Fierro (1872, 1879)",
            language="Spanish",
            licence="public domain",
            train_fraction=0.8,
            file_name="martin_fierro.txt",
            url="https://raw.githubusercontent.com/segusantos/transformer-notebook/main/data/martin_fierro.txt",
            sha256="a6ce4aff789c6f4d6f5375026795f08bb33fd2c65f2f912f7280af21c575c360",
        ),
        CorpusSource(
            name="austen",
            title="Jane Austen: the six novels (1811 to 1818)",
            language="English",
            licence="public domain",
            train_fraction=0.95,
            file_name="austen.txt",
            sha256="1134b12b180b7d5c3fb4ca709881809e0bd4855c78644cfb5949523b57738976",
            made="install R's package janeaustenr and run python -m transformer.data.austen",
        ),
        CorpusSource(
            name="python-manual",
            title="The language reference that ships with Python",
            language="English",
            licence="Python Software Foundation License",
            train_fraction=0.9,
        ),
    )
}


def load_corpus(
    name: str, folder: str | Path | None = None, progress: Callable[[int, int], object] | None = None
) -> Corpus:
    """A corpus by name.

    Looks in `folder`, then in the folder that HEADSUP_CORPORA names, then in the user's cache, and downloads into the
    cache otherwise. A file counts only if its SHA-256 is right.
    progress: called with the bytes received and the bytes expected while downloading.
    Raises: CorpusError if it is unknown, damaged, or can't be downloaded.
    """
    source = SOURCES.get(name)
    if source is None:
        raise CorpusError(f"There is no corpus {name!r}; there are {', '.join(SOURCES)}.")
    if not source.file_name:
        return Corpus(source, _python_manual())
    for where in (folder, os.environ.get(FOLDER_VARIABLE)):
        if where and (path := Path(where) / source.file_name).is_file():
            return Corpus(source, _read_checked(path, source))
    if source.made:
        raise CorpusError(f"{source.title} isn't on this machine. To get it, {source.made}; {_put_it(source)}.")
    return Corpus(source, _download(source, progress))


def text_corpus(content: bytes | str, title: str) -> Corpus:
    """A user's text as a corpus, nine tenths of it to train on.

    content: a file's bytes, which must be UTF-8, or a string. A byte order mark is dropped, and every line end
        becomes a line feed, so that the same text from another system gives the same model.
    Raises: CorpusError for what is no text, or too short, too long or too varied to learn from character by
        character; the message says what would do.
    """
    if isinstance(content, str):
        content = content.encode("utf-8", "replace")  # half a surrogate pair becomes a question mark
    decoded = _decoded(content)
    if len(content) > LONGEST_TEXT:
        raise CorpusError(f"Expected at most {LONGEST_TEXT:,} bytes of text; found {len(content):,} bytes.")
    text = decoded.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if (size := len(text.encode())) < SHORTEST_TEXT:
        raise CorpusError(
            f"Expected at least {SHORTEST_TEXT:,} bytes of text, about half a page; "
            f"found {size:,} byte{'' if size == 1 else 's'}."
        )
    different = len(set(text))
    if different < 2:
        raise CorpusError("The text repeats one character; a text of at least two different ones can be learnt.")
    if different > MOST_CHARACTERS:
        raise CorpusError(
            f"The text has {different:,} different characters; a model that reads character by character can learn at "
            f"most {MOST_CHARACTERS}, so a text in an alphabet would do."
        )
    source = CorpusSource("own-text", title, language="", licence="yours", train_fraction=0.9)
    return Corpus(source, text)


def is_at_hand(name: str, folder: str | Path | None = None) -> bool:
    """True if `load_corpus` would find the text without a network. KeyError for a corpus that doesn't exist."""
    import pooch

    source = SOURCES[name]
    folders = [
        candidate for candidate in (folder, os.environ.get(FOLDER_VARIABLE), pooch.os_cache("headsup")) if candidate
    ]
    return not source.file_name or any((Path(candidate) / source.file_name).is_file() for candidate in folders)


def _decoded(content: bytes) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"Expected a plain text in UTF-8; found {file_kind(content)}: byte {error.start + 1:,} isn't UTF-8."
        ) from None
    if "\0" in text:
        raise CorpusError(f"Expected a plain text in UTF-8; found {file_kind(content)}.")
    return text


def _read_checked(path: Path, source: CorpusSource) -> str:
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != source.sha256:
        raise CorpusError(
            f"{path.name} in {path.parent} is not the file it should be (its SHA-256 differs). "
            f"Delete it, or get it again: {source.url or source.made}."
        )
    return content.decode("utf-8")


def _download(source: CorpusSource, progress: Callable[[int, int], object] | None) -> str:
    import pooch

    try:
        path = pooch.retrieve(
            url=source.url,
            known_hash=f"sha256:{source.sha256}",
            fname=source.file_name,
            path=pooch.os_cache("headsup"),
            # pooch accepts an object, though its annotation says bool
            downloader=pooch.HTTPDownloader(  # pyright: ignore[reportArgumentType]
                progressbar=_Progress(progress) if progress else False,  # pyright: ignore[reportArgumentType]
                timeout=20,
            ),
        )
    except Exception as error:  # pooch passes on any of the network's errors
        if full := disk_problem(error):
            raise CorpusError(f"{source.title} can't be kept in {pooch.os_cache('headsup')}: {full}.") from error
        raise CorpusError(
            f"{source.title} could not be downloaded from {source.url} ({type(error).__name__}). Check the network, "
            f"or {_put_it(source)}."
        ) from error
    return Path(path).read_bytes().decode("utf-8")  # keeps line ends


def _put_it(source: CorpusSource) -> str:
    return f"put {source.file_name} into a folder and name that folder in {FOLDER_VARIABLE} or --corpus-dir"


class _Progress:
    """The progress bar pooch expects, as a callback."""

    def __init__(self, report: Callable[[int, int], None]) -> None:
        self.report, self.total, self.received = report, 0, 0

    def update(self, amount: int) -> None:
        self.received += amount
        self.report(self.received, self.total)

    def reset(self) -> None:
        self.received = 0

    def close(self) -> None:
        """Nothing to release."""


def _python_manual() -> str:
    from pydoc_data.topics import topics

    return "\n".join(topics[name] for name in sorted(topics))
