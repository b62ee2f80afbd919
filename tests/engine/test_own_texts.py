"""Tests training texts of a visitor's own: accepted, or refused with a sentence."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer import CorpusError
from transformer.data.batches import character_ids
from transformer.data.corpora import LONGEST_TEXT, MOST_CHARACTERS, text_corpus
from transformer.training.objectives import TextObjective

PAGE = "Aquí me pongo a cantar\nal compás de la vigüela.\n" * 30


def refused(content: bytes | str, *words: str) -> None:
    with pytest.raises(CorpusError) as caught:
        text_corpus(content, "Mine")
    message = str(caught.value)
    assert message[0].isupper() and message.endswith(".") and message.count(". ") == 0
    for word in words:
        assert word in message


class TestGoodTexts:
    @pytest.mark.parametrize(
        "content",
        [
            PAGE,
            PAGE.encode(),
            b"\xef\xbb\xbf" + PAGE.encode(),
            "\ufeff" + PAGE,
            PAGE.replace("\n", "\r\n"),
            PAGE.replace("\n", "\r\n").encode(),
            PAGE.replace("\n", "\r").encode(),
        ],
        ids=["text", "bytes", "mark in bytes", "mark", "CRLF", "CRLF in bytes", "CR"],
    )
    def test_wherever_it_was_written_it_is_the_same(self, content):
        corpus = text_corpus(content, "Mine")
        assert corpus.text == PAGE
        train, validation = corpus.split()
        assert train + validation == PAGE and len(train) == int(0.9 * len(PAGE))

    def test_its_source_says_whose_it_is(self):
        source = text_corpus(PAGE, "A title").source
        assert (source.name, source.title, source.licence, source.url) == ("own-text", "A title", "yours", "")

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


class TestRefused:
    @pytest.mark.parametrize("content", ["", b"", "ab" * 499, b"ab" * 499 + b"\r\n" * 1])
    def test_too_short(self, content):
        refused(content, "bytes", "at least 1,000")

    def test_too_long(self):
        refused(b"a" * (LONGEST_TEXT + 1), "5,000,001 bytes", "at most 5,000,000")
        refused("é" * (LONGEST_TEXT // 2 + 1), "5,000,002 bytes")

    @pytest.mark.parametrize("content", [PAGE.encode("latin-1"), b"\x89PNG\r\n\x1a\n" * 200, b"PK\3\4\xff" * 300])
    def test_no_utf_8(self, content):
        refused(content, "Byte", "UTF-8")

    def test_utf_16(self):
        refused(PAGE.encode("utf-16"), "UTF-16", "saved as UTF-8")

    @pytest.mark.parametrize("content", ["ab\0" * 500, PAGE.encode("utf-16-le") * 2, bytes(2_000)])
    def test_binary(self, content):
        refused(content)

    def test_one_character_alone(self):
        refused("a" * 2_000, "one character")

    def test_too_many_different_characters(self):
        refused("".join(map(chr, range(0x4E00, 0x4E00 + 401))) * 2, "401 different characters", "at most 400")

    def test_half_a_surrogate_pair_is_a_question_mark(self):
        assert text_corpus("\ud800" + PAGE, "Mine").text == "?" + PAGE


class TestLearningFromIt:
    @given(st.text(max_size=200))
    def test_its_characters_are_looked_up_at_once_as_the_tokenizer_would_one_by_one(self, text):
        text = text.encode("utf-8", "replace").decode().replace("\0", "")
        objective = TextObjective(text_corpus(PAGE + text, "Mine"), 8, 2, 0)
        written = objective.corpus.text
        assert character_ids(objective.tokenizer, written).tolist() == objective.tokenizer.encode(written)
        assert [*objective.train.tolist(), *objective.validation.tolist()] == objective.tokenizer.encode(written)
        assert objective.tokenizer.decode(objective.train.tolist()) == objective.corpus.split()[0]

    def test_nothing_is_nothing(self):
        assert character_ids(TextObjective(text_corpus(PAGE, ""), 8, 2, 0).tokenizer, "").tolist() == []
