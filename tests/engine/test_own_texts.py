"""Tests training texts of a visitor's own: accepted, or refused with a sentence."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer import CorpusError
from transformer.data.corpora import LONGEST_TEXT, MOST_CHARACTERS, text_corpus

PAGE = "Aquí me pongo a cantar\nal compás de la vigüela.\n" * 30


class TestGoodTexts:
    @pytest.mark.parametrize(
        "content",
        [
            *(PAGE, PAGE.encode(), b"\xef\xbb\xbf" + PAGE.encode(), "\ufeff" + PAGE, PAGE.replace("\n", "\r\n")),
            *(PAGE.replace("\n", end).encode() for end in ("\r\n", "\r")),
        ],
        ids=range(7),
    )
    def test_wherever_it_was_written_it_is_the_same(self, content):
        corpus = text_corpus(content, "Mine")
        assert corpus.text == PAGE and text_corpus("\ud800" + PAGE, "Mine").text == "?" + PAGE
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
    @settings(max_examples=100)
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
        *((content, ["bytes", "at least 1,000"]) for content in ("", b"", "ab" * 499, b"ab" * 499 + b"\r\n" * 1)),
        (b"a" * (LONGEST_TEXT + 1), ["5,000,001 bytes", "at most 5,000,000"]),
        ("é" * (LONGEST_TEXT // 2 + 1), ["5,000,002 bytes"]),
        *(
            (content, ["Expected a plain text in UTF-8; found ", "byte"])
            for content in (PAGE.encode("latin-1"), b"\x89PNG\r\n\x1a\n" * 200)
        ),
        *(
            (b"PK\3\4\xff" * 300, ["Expected a plain text in UTF-8; found ", "byte"]),
            (PAGE.encode("utf-16"), ["found a text in UTF-16"]),
        ),
        *((content, []) for content in ("ab\0" * 500, PAGE.encode("utf-16-le") * 2, bytes(2_000))),
        ("a" * 2_000, ["one character"]),
        ("".join(map(chr, range(0x4E00, 0x4E00 + 401))) * 2, ["401 different characters", "at most 400"]),
    ],
    ids=range(15),
)
def test_what_can_t_be_learned_from_is_refused_in_a_sentence(content, words):
    with pytest.raises(CorpusError) as caught:
        text_corpus(content, "Mine")
    message = str(caught.value)
    assert message[0].isupper() and message.endswith(".") and message.count(". ") == 0
    assert all(word in message for word in words)
