"""Tests tokenizers: round trips, and unknown characters with their positions."""

import re
import time

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers, trainers

from transformer import Tokenizer, UnknownPiece, UnknownTokenError
from transformer.data.tokenizers import BYTE_LETTERS

ALPHABET = "abcñé \n\t.,'\"#-Ω日🙂\u0301\r\x00"
CHARACTERS = Tokenizer.of_characters(ALPHABET)
any_text = st.text(st.characters(exclude_categories=()), max_size=20)


def trained_bpe() -> Tokenizer:
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Split(tokenizers.Regex(r"\s"), "isolated")
    backend.decoder = decoders.Fuse()
    backend.train_from_iterator(
        ["low lower lowest new newer newest"] * 4, trainers.BpeTrainer(vocab_size=30, show_progress=False)
    )
    return Tokenizer(backend)


def of_words() -> Tokenizer:
    words = ["zero", "one", "two", "hundred", "and"]
    backend = tokenizers.Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return Tokenizer(backend)


BPE, WORDS = trained_bpe(), of_words()


class TestCharacters:
    @given(any_text | st.text(st.sampled_from(ALPHABET)))
    def test_a_text_is_encoded_whole_or_refused_with_every_unknown_character(self, text):
        unknown = [(character, place) for place, character in enumerate(text) if character not in ALPHABET]
        surrogates = [(character, place) for character, place in unknown if "\ud800" <= character <= "\udfff"]
        rest = CHARACTERS.without_unknown(text)
        assert rest == "".join(character for character in text if character in ALPHABET)
        ids = CHARACTERS.encode(rest)
        assert len(ids) == len(rest) and CHARACTERS.decode(ids) == rest
        assert "".join(CHARACTERS.piece(token, first=False) for token in ids) == rest
        if unknown:
            with pytest.raises(UnknownTokenError) as caught:
                CHARACTERS.encode(text)
            assert [(piece.text, piece.position) for piece in caught.value.pieces] == (surrogates or unknown)

    def test_ids_follow_the_code_points(self):
        tokenizer = Tokenizer.of_characters("banana")
        assert tokenizer.vocab_size == 3
        assert tokenizer.encode("nab") == [2, 0, 1]

    def test_the_error_says_what_and_where(self):
        error = UnknownTokenError([UnknownPiece("x", 1), UnknownPiece("  ", 2)])
        assert str(error) == "This model has never seen: 'x' at 2, '␣␣' at 3."
        assert isinstance(error, ValueError)
        with pytest.raises(UnknownTokenError, match=r"and 4 more\.$"):
            CHARACTERS.encode("X" * 12)


class TestLabels:
    def test_spaces_and_line_ends_can_be_seen(self):
        ids = CHARACTERS.encode("a \n\t\r\x00\u0301")
        assert CHARACTERS.labels(ids) == ["a", "␣", "↵", "⇥", "␍", "U+0000", "\u0301"]

    def test_every_label_of_the_vocabulary_can_be_seen_and_told_apart(self):
        labels = CHARACTERS.labels(range(CHARACTERS.vocab_size))
        assert len(set(labels)) == CHARACTERS.vocab_size
        assert all(label.strip() and label.isprintable() for label in labels)

    def test_an_id_without_a_token_has_a_number(self):
        assert CHARACTERS.label(999) == "#999"


class TestWords:
    def test_a_long_text_takes_as_much_longer_as_it_is_longer(self):
        def seconds(text):
            began = time.thread_time()  # what others on the machine do doesn't count
            assert not set(CHARACTERS.without_unknown(text)) - set(ALPHABET)
            return time.thread_time() - began

        short, long = "a中" * 2_000, "a中" * 40_000
        assert seconds(long) < 20 * 6 * max(min(seconds(short) for _ in range(3)), 1e-3)

    def test_pieces_that_never_stop_joining_leave_nothing(self):
        runs = [letter * count for letter in "xy" for count in range(1, 200)]
        backend = tokenizers.Tokenizer(models.WordLevel({run: i for i, run in enumerate(runs)}))
        backend.pre_tokenizer = pre_tokenizers.Split(tokenizers.Regex("xy"), "isolated")
        assert Tokenizer(backend).without_unknown("x" * 5 + "y" * 9) == "y" * 4
        assert Tokenizer(backend).without_unknown("x" * 150 + "y" * 150) == ""


NUMBERS = ["zero", "one", "two", "hundred", "veintidós", "ciento", "ñandú"]
SPECIAL = ("[pad]", "[start]", "[end]")
OF_WORDS = Tokenizer.of_words(NUMBERS, SPECIAL)
BRACKETS = Tokenizer.of_characters("[]padstren ", SPECIAL)
"""An alphabet in which the names of the special tokens can be written."""
SENTENCE_WORDS = ["Mary", "Who", "went", "to", "the", "park", "has", ".", "?"]
OF_SENTENCES = Tokenizer.of_sentences(SENTENCE_WORDS, SPECIAL)

separators = st.text(st.sampled_from(" ,-\n\t"), min_size=1, max_size=3)


@st.composite
def sentences(draw, words: list[str]) -> tuple[str, list[str], list[int]]:
    """A text of these words, upper and lower case mixed, anything between them; the words, and where each begins."""
    chosen = draw(st.lists(st.sampled_from(words), max_size=6))
    text, places = draw(st.just("") | separators), []
    for word in chosen:
        places.append(len(text))
        text += draw(st.sampled_from([word, word.upper(), word.capitalize()])) + draw(separators)
    return text, chosen, places


class TestOfWords:
    @given(sentences(NUMBERS))
    def test_words_are_read_whatever_stands_between_them_and_written_with_spaces(self, sentence):
        text, words, _ = sentence
        assert OF_WORDS.unknown_pieces(text) == []
        ids = OF_WORDS.encode(text)
        assert ids == [sorted(NUMBERS).index(word) for word in words]
        assert OF_WORDS.decode(ids) == " ".join(words)
        assert OF_WORDS.encode(OF_WORDS.decode(ids)) == ids

    @given(sentences([*NUMBERS, "three", "[pad]", "twohundred", "日"]))
    def test_every_unknown_word_is_listed_where_it_stands(self, sentence):
        text, words, places = sentence
        unknown = [(word, place) for word, place in zip(words, places, strict=True) if word not in NUMBERS]
        found = OF_WORDS.unknown_pieces(text)
        assert [(piece.text.lower(), piece.position) for piece in found] == unknown
        assert all(text[piece.position :].startswith(piece.text) for piece in found)
        if unknown:
            with pytest.raises(UnknownTokenError):
                OF_WORDS.encode(text)
        rest = OF_WORDS.without_unknown(text)
        assert OF_WORDS.decode(OF_WORDS.encode(rest)) == " ".join(word for word in words if word in NUMBERS)

    @given(any_text)
    def test_any_text_is_encoded_whole_or_refused(self, text):
        separator = r"(?:[^\S\x1c-\x1f]|[,\-])+"  # Python counts four control characters among the spaces
        words = [word for word in re.split(separator, text) if word]
        if any(word.lower() not in NUMBERS for word in words):
            with pytest.raises(UnknownTokenError):
                OF_WORDS.encode(text)
        else:
            assert OF_WORDS.decode(OF_WORDS.encode(text)) == " ".join(words).lower()

    def test_a_vocabulary_may_be_given_in_capitals(self):
        tokenizer = Tokenizer.of_words(["Zero", "ÑANDÚ", "zero"])
        assert tokenizer.vocab_size == 2
        assert tokenizer.encode("zero ñandú") == tokenizer.encode("ZERO Ñandú") == [0, 1]

    @given(st.lists(st.integers(0, OF_WORDS.vocab_size - 1), max_size=8))
    def test_pieces_joined_are_the_text_and_decoding_leaves_special_tokens_out(self, ids):
        text, special = "", {OF_WORDS.special_id(token) for token in SPECIAL}
        for token in ids:
            text += OF_WORDS.piece(token, first=not text)
        assert text == OF_WORDS.decode(ids) == OF_WORDS.decode([token for token in ids if token not in special])
        assert all(OF_WORDS.piece(token, first=first) == "" for token in special for first in (True, False))


class TestSpecialTokens:
    @pytest.mark.parametrize("tokenizer", [OF_WORDS, BRACKETS], ids=["words", "characters"])
    def test_they_come_after_all_others(self, tokenizer):
        ids = [tokenizer.special_id(token) for token in SPECIAL]
        assert ids == [tokenizer.vocab_size - 3, tokenizer.vocab_size - 2, tokenizer.vocab_size - 1]
        assert tokenizer.labels(ids) == list(SPECIAL)
        with pytest.raises(KeyError):
            tokenizer.special_id("[mask]")
        with pytest.raises(KeyError):
            tokenizer.special_id("one")
        for text in ("[pad]", "one [end] two", "[START]", "one[pad]", "[pad]one"):
            with pytest.raises(UnknownTokenError):
                OF_WORDS.encode(text)

    @given(st.lists(st.sampled_from([*SPECIAL, *"[]pasend "]), max_size=8).map("".join))
    def test_they_can_not_be_typed(self, text):
        """Where brackets and letters are known, the name of a special token is a word like any other."""
        ids = BRACKETS.encode(text)
        assert len(ids) == len(text)
        assert not set(ids) & {BRACKETS.special_id(token) for token in SPECIAL}
        assert BRACKETS.decode(ids) == text


class TestBytePairs:
    def test_it_merges(self):
        assert len(BPE.encode("lowest newest")) < len("lowest newest") / 2

    @given(st.text(st.sampled_from("lowerñ🙂Z "), min_size=1))
    def test_characters_outside_its_alphabet_are_refused_rather_than_dropped(self, text):
        unknown = [(character, place) for place, character in enumerate(text) if character in "ñ🙂Z"]
        assert [(piece.text, piece.position) for piece in BPE.unknown_pieces(text)] == unknown
        if unknown:
            with pytest.raises(UnknownTokenError):
                BPE.encode(text)
        assert BPE.decode(BPE.encode(BPE.without_unknown(text))) == re.sub("[ñ🙂Z]", "", text)


class TestFiles:
    @pytest.mark.parametrize(
        ("tokenizer", "text"),
        [
            (CHARACTERS, ALPHABET),
            (BPE, "lowest new"),
            (WORDS, "one two"),
            (OF_WORDS, "TWO hundred-one"),
            (BRACKETS, "a [pad] [end]"),
            (OF_SENTENCES, "who has the park ? Mary went."),
        ],
        ids=range(6),
    )
    def test_what_was_saved_is_what_is_loaded(self, tokenizer, text, tmp_path):
        tokenizer.save(tmp_path / "tokenizer.json")
        loaded = Tokenizer.from_file(tmp_path / "tokenizer.json")
        ids = tokenizer.encode(text)
        special = range(tokenizer.vocab_size - 3, tokenizer.vocab_size)
        assert (loaded.encode(text), loaded.vocab_size) == (ids, tokenizer.vocab_size)
        assert loaded.decode([*special, *ids, *special]) == tokenizer.decode([*special, *ids, *special])
        for first in (True, False):
            found, expected = (
                [each.piece(token, first=first) for token in (*ids, *special)] for each in (loaded, tokenizer)
            )
            assert found == expected
        if tokenizer in (OF_WORDS, BRACKETS, OF_SENTENCES):
            assert [loaded.special_id(token) for token in SPECIAL] == [*special]

    def test_a_file_that_cuts_or_fills_texts_does_so_no_longer(self):
        backend = tokenizers.Tokenizer.from_str(CHARACTERS._backend.to_str())
        backend.enable_truncation(2)
        backend.enable_padding(length=9, pad_token="a")
        assert Tokenizer(backend).encode("abc") == CHARACTERS.encode("abc")

    @pytest.mark.parametrize("content", ["", "{}", "[]", "null", "{", '{"model": {"type": "BPE"}}', "\x00\xff"])
    def test_a_file_that_is_none_is_refused(self, content, tmp_path):
        path = tmp_path / "tokenizer.json"
        path.write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match=r"tokenizer\.json is not a tokenizer file"):
            Tokenizer.from_file(path)
        with pytest.raises(ValueError, match=r"absent\.json is not a tokenizer file"):
            Tokenizer.from_file(tmp_path / "absent.json")


class TestBytes:
    """Vocabularies of bytes, as GPT-2 and most since have them, and those that fall back on bytes."""

    def of_bytes(self, *longer: str) -> Tokenizer:
        letters = list(BYTE_LETTERS)
        places = {piece: place for place, piece in enumerate([*letters, *longer])}
        backend = tokenizers.Tokenizer(models.BPE(places, []))
        backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        return Tokenizer(backend)

    @given(st.text())
    def test_every_text_is_known_and_comes_back(self, text):
        tokenizer = self.of_bytes()
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            return
        assert tokenizer.unknown_pieces(text) == []
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert bytes(BYTE_LETTERS[tokenizer._backend.id_to_token(each)] for each in ids) == text.encode()

    def test_labels_show_spaces_and_parts_of_a_character(self):
        tokenizer = self.of_bytes("Ġthe", "Ċ", "Ã±", "âĢ")
        shown = [tokenizer.label(len(BYTE_LETTERS) + place) for place in range(4)]
        assert shown == ["␣the", "↵", "ñ", "⟨E2⟩⟨80⟩"]

    def test_a_vocabulary_that_falls_back_on_bytes_knows_everything(self):
        pieces = ["<unk>", "▁the", "a", *(f"<0x{byte:02X}>" for byte in range(256))]
        backend = tokenizers.Tokenizer(
            models.BPE({piece: place for place, piece in enumerate(pieces)}, [], unk_token="<unk>", byte_fallback=True)
        )
        backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
        tokenizer = Tokenizer(backend)
        assert tokenizer.unknown_pieces("añ\n") == []
        assert tokenizer.decode(tokenizer.encode("añ")) == "añ"
        assert tokenizer.labels([1, 3 + 0xC3, 3 + 0x0A]) == ["␣the", "⟨C3⟩", "↵"]


@pytest.mark.parametrize(
    "model",
    [
        models.WordPiece({"one": 0, "##s": 1, "two": 2}),
        models.Unigram([("one", -1.0), *((letter, -2.0) for letter in "onestw")]),
        models.BPE({letter: at for at, letter in enumerate("onestw")}, []),
    ],
    ids=["WordPiece", "Unigram", "BPE"],
)
def test_parts_of_words_that_a_vocabulary_lacks_are_named_unless_it_has_a_token_for_them(model):
    backend = tokenizers.Tokenizer(model)
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = Tokenizer(backend)
    assert tokenizer.unknown_pieces("ones two") == [] and tokenizer.encode("ones two")
    (unknown,) = tokenizer.unknown_pieces("two x")
    assert unknown == UnknownPiece("x", 4)


@st.composite
def typed(draw) -> tuple[str, list[str]]:
    """Words and signs as somebody may type them, and as they should be written."""
    chosen = draw(st.lists(st.sampled_from(SENTENCE_WORDS), max_size=9))
    text = draw(st.sampled_from(["", " ", "\n"]))
    for before, word in zip(["", *chosen], chosen, strict=False):
        is_apart = before in ("", ".", "?") or word in ".?"
        text += draw(st.sampled_from(["", " ", "  \n"] if is_apart else [" ", "\t"]))
        text += draw(st.sampled_from([word, word.lower(), word.upper(), word.capitalize()]))
    return text, chosen


class TestOfSentences:
    @given(typed())
    def test_however_it_is_typed_it_is_the_same(self, case):
        text, words = case
        assert OF_SENTENCES.labels(OF_SENTENCES.encode(text)) == words

    @given(st.lists(st.sampled_from(SENTENCE_WORDS)))
    def test_it_writes_no_space_before_a_sign_and_the_pieces_make_up_the_text(self, words):
        ids = [OF_SENTENCES.encode(word)[0] for word in words]
        text = OF_SENTENCES.decode(ids)
        assert text == " ".join(words).replace(" .", ".").replace(" ?", "?")
        assert OF_SENTENCES.encode(text) == ids
        assert "".join(OF_SENTENCES.piece(id, first=place == 0) for place, id in enumerate(ids)) == text

    @given(any_text)
    def test_any_text_is_read_whole_or_refused(self, text):
        try:
            ids = OF_SENTENCES.encode(text)
        except UnknownTokenError as error:
            assert error.pieces == tuple(OF_SENTENCES.unknown_pieces(text))
            assert all(text[piece.position :].startswith(piece.text) for piece in error.pieces)
            rest = OF_SENTENCES.without_unknown(text)
            assert not OF_SENTENCES.unknown_pieces(rest)
        else:
            assert len(ids) == len(OF_SENTENCES.decode(ids).replace(".", " .").replace("?", " ?").split())
