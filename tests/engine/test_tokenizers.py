"""Tests tokenizers: round trips, and unknown characters with their positions."""

import base64
import json
import re
import time
from unicodedata import category, normalize

import pytest
import tokenizers
from hypothesis import assume, given
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers, trainers

from transformer import Tokenizer, UnknownPiece, UnknownTokenError
from transformer.checkpoints.gguf_tokenizer import CUTS
from transformer.data import foreign_tokenizer
from transformer.data.token_names import kinds_of
from transformer.data.token_text import printable
from transformer.data.tokenizers import BYTE_LETTERS

ALPHABET = "abcñé \n\t.,'\"#-Ω日🙂\u0301\r\x00"
NUMBERS = ["zero", "one", "two", "hundred", "veintidós", "ciento", "ñandú"]
SENTENCE_WORDS = ["Mary", "Who", "went", "to", "the", "park", "has", ".", "?"]
SPECIAL = ("[pad]", "[start]", "[end]")
UNSEEN = (
    "\ufe0f\ufe0e\u034f\u115f\u1160\u3164\uffa0\u17b4\u180b\u2800\U000e0100\U0001d159\U00016fe4"  # by their kinds, seen
)
UNSEEN += "\u200d\u200b\u00ad\u2028\x85\ue000\ufdd0\U0001ffff\U0001d173"


def trained_bpe() -> Tokenizer:
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Split(tokenizers.Regex(r"\s"), "isolated")
    backend.decoder = decoders.Fuse()
    backend.train_from_iterator(
        ["low lower lowest new newer newest"] * 4, trainers.BpeTrainer(vocab_size=30, show_progress=False)
    )
    return Tokenizer(backend)


def of_bytes(*longer: str) -> Tokenizer:
    places = {piece: place for place, piece in enumerate([*BYTE_LETTERS, *longer])}
    backend = tokenizers.Tokenizer(models.BPE(places, []))
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    return Tokenizer(backend)


@pytest.mark.parametrize(
    "model",
    [
        models.BPE(
            {name: at for at, name in enumerate(["a", "b", "ab", "abab"])}, [("a", "b"), ("ab", "ab")], dropout=0.5
        ),
        models.Unigram([("<unk>", -9.0), ("a", -2.0), ("b", -2.0), ("ab", -2.0)], 0, alpha=0.1, nbest_size=8),
        models.Unigram([("<unk>", -9.0), ("a", -2.0), ("b", -2.0), ("ab", -2.0)], 0, alpha=0.1),
    ],
)
def test_a_text_is_cut_the_same_way_each_time_however_it_was_in_training(model, tmp_path):
    backend = tokenizers.Tokenizer(model)
    text = "abab" * 8
    assert len({tuple(backend.encode(text).ids) for _ in range(20)}) > 1
    backend.save(str(tmp_path / "tokenizer.json"))
    for tokenizer in (Tokenizer.from_file(tmp_path / "tokenizer.json"), Tokenizer(backend)):
        ways = {tuple(each.encode(text)) for each in (tokenizer, tokenizer.with_names()) for _ in range(10)}
        tokenizer.save(tmp_path / "again.json")
        again = tokenizers.Tokenizer.from_file(str(tmp_path / "again.json"))
        assert len(ways | {tuple(again.encode(text).ids) for _ in range(10)}) == 1


CHARACTERS, BPE, BYTES = Tokenizer.of_characters(ALPHABET), trained_bpe(), of_bytes()
OF_WORDS = Tokenizer.of_words(NUMBERS, SPECIAL)
OF_SENTENCES = Tokenizer.of_sentences(SENTENCE_WORDS, SPECIAL)
BRACKETS = Tokenizer.of_characters("[]padstren ", SPECIAL)
"""An alphabet in which the names of the special tokens can be written."""


def is_number(word: str) -> bool:
    return word.lower() in NUMBERS


any_text = st.text(st.characters(exclude_categories=()), max_size=20).filter(
    lambda text: normalize("NFC", text) == text == normalize("NFD", text)
)
"""What can be written in one way only."""
between = st.sampled_from([" ", ",", "-", "\n", "\t", " , "])
words = st.sampled_from([*NUMBERS, *map(str.upper, NUMBERS), "Zero", "three", "[pad]", "twohundred", "日"])
KNOWN = {
    "characters": (CHARACTERS, st.text(st.sampled_from(ALPHABET)), ALPHABET.__contains__),
    "brackets": (
        BRACKETS,
        st.lists(st.sampled_from([*SPECIAL, *"[]pasend "])).map("".join),
        set("[]padstren ").__contains__,
    ),
    "pairs": (BPE, st.text(st.sampled_from("lowerñ🙂Z ")), set("lowerstn ").__contains__),
    "bytes": (BYTES, st.text(), lambda piece: True),
    "words": (OF_WORDS, st.lists(st.tuples(words, between).map("".join)).map("".join), is_number),
}
"""Tokenizers, texts of what they know and a little more, and whether they know a character or a word."""


@pytest.mark.parametrize("kind", KNOWN)
@given(st.data())
def test_a_text_is_encoded_whole_or_refused_with_every_unknown_piece(kind, data):
    tokenizer, typed, known = KNOWN[kind]
    text = data.draw(typed | any_text)
    # Python counts four control characters among the spaces.
    cut = r"(?:[^\s,\-]|[\x1c-\x1f])+" if kind == "words" else r"."
    pieces = [(match[0], match.start()) for match in re.finditer(cut, text, re.DOTALL)]
    unknown = [each for each in pieces if not known(each[0])]
    surrogates = [(letter, place) for place, letter in enumerate(text) if "\ud800" <= letter <= "\udfff"]
    found = [(piece.text, piece.position) for piece in tokenizer.unknown_pieces(text)]
    assert found == (surrogates or unknown)
    if found:
        with pytest.raises(UnknownTokenError) as caught:
            tokenizer.encode(text)
        assert [(piece.text, piece.position) for piece in caught.value.pieces] == found
    rest = tokenizer.without_unknown(text)
    ids = tokenizer.encode(rest)
    written = tokenizer.decode(ids)
    if not surrogates:
        kept = [piece for piece, _ in pieces if known(piece)]
        assert written == (" ".join(kept).lower() if kind == "words" else "".join(kept))
    assert written == rest or kind == "words"
    assert tokenizer.encode(written) == ids
    assert "".join(tokenizer.pieces(ids)) == written
    if kind != "bytes":
        assert "".join(tokenizer.piece(token, first=at == 0) for at, token in enumerate(ids)) == written
    assert not {*ids} & {*tokenizer.special.values()}  # whose names can't be typed


def test_ids_follow_the_code_points_and_special_tokens_come_after_all_others():
    assert (Tokenizer.of_characters("banana").vocab_size, Tokenizer.of_characters("banana").encode("nab")) == (
        3,
        [2, 0, 1],
    )
    capitals = Tokenizer.of_words(["Zero", "ÑANDÚ", "zero"])
    assert capitals.vocab_size == 2
    assert capitals.encode("zero ñandú") == capitals.encode("ZERO Ñandú") == [0, 1]
    for tokenizer in (OF_WORDS, BRACKETS, OF_SENTENCES):
        ids = [tokenizer.special_id(token) for token in SPECIAL]
        assert ids == [*range(tokenizer.vocab_size - 3, tokenizer.vocab_size)]
        assert tokenizer.labels(ids) == list(SPECIAL)
        assert all(tokenizer.piece(token, first=first) == "" for token in ids for first in (True, False))
        assert tokenizer.decode([*ids, 1, *ids, 0]) == tokenizer.decode([1, 0])
        for name in ("[mask]", "one"):
            with pytest.raises(KeyError):
                tokenizer.special_id(name)
    assert len(BPE.encode("lowest newest")) < len("lowest newest") / 2
    assert bytes(BYTE_LETTERS[BYTES._backend.id_to_token(each)] for each in BYTES.encode("ñ日")) == "ñ日".encode()


@st.composite
def typed_sentences(draw) -> tuple[str, list[str]]:
    """Words and signs as somebody may type them, and as they should be written."""
    chosen = draw(st.lists(st.sampled_from(SENTENCE_WORDS), max_size=9))
    text = draw(st.sampled_from(["", " ", "\n"]))
    for before, word in zip(["", *chosen], chosen, strict=False):
        is_apart = before in ("", ".", "?") or word in ".?"
        text += draw(st.sampled_from(["", " ", "  \n"] if is_apart else [" ", "\t"]))
        text += draw(st.sampled_from([word, word.lower(), word.upper(), word.capitalize()]))
    return text, chosen


@given(typed_sentences(), any_text)
def test_however_a_sentence_is_typed_it_is_the_same_and_no_space_stands_before_a_sign(case, anything):
    text, chosen = case
    ids = OF_SENTENCES.encode(text)
    assert OF_SENTENCES.labels(ids) == chosen
    written = OF_SENTENCES.decode(ids)
    assert written == " ".join(chosen).replace(" .", ".").replace(" ?", "?")
    assert OF_SENTENCES.encode(written) == ids
    assert "".join(OF_SENTENCES.piece(id, first=place == 0) for place, id in enumerate(ids)) == written
    unknown = OF_SENTENCES.unknown_pieces(anything)
    assert all(anything[piece.position :].startswith(piece.text) for piece in unknown)
    assert not OF_SENTENCES.unknown_pieces(OF_SENTENCES.without_unknown(anything))
    if not unknown:
        signs = anything.replace(".", " . ").replace("?", " ? ")
        assert len(OF_SENTENCES.encode(anything)) == len(signs.split())


def test_an_error_says_what_and_where():
    error = UnknownTokenError([UnknownPiece("x", 1), UnknownPiece("  ", 2)])
    assert str(error) == "This model has never seen: 'x' at 2, '␣␣' at 3." and isinstance(error, ValueError)
    with pytest.raises(UnknownTokenError, match=r"and 4 more\.$"):
        CHARACTERS.encode("X" * 12)


def test_every_label_can_be_seen_and_told_apart():
    labels = CHARACTERS.labels(range(CHARACTERS.vocab_size))
    assert len({*labels}) == CHARACTERS.vocab_size
    assert all(label.strip() and label.isprintable() for label in labels)
    expected = ["a", "␣", "↵", "⇥", "␍", "U+0000", "◌\u0301"]
    assert CHARACTERS.labels(CHARACTERS.encode("a \n\t\r\x00\u0301")) == expected and CHARACTERS.label(999) == "#999"
    longer = "Ġthe", "Ċ", "Ã±", "âĢ", "eÌģ", "Ìģe"
    expected = ["␣the", "↵", "ñ", "⟨E2⟩⟨80⟩", "e\u0301", "◌\u0301e"]
    assert of_bytes(*longer).labels(range(256, 262)) == expected


@given(st.text(st.characters(exclude_categories=())), st.sampled_from(UNSEEN))
def test_what_draws_nothing_has_a_sign_and_a_mark_without_a_letter_a_circle(text, unseen):
    assume(not {*text[-2:]} & {"\u200d", "\ufe0f", "\ufe0e"} and not category(text[-1:] or " ").startswith("S"))
    label = printable(f"{text}{unseen}\u0301")
    assert label.endswith(f"U+{ord(unseen):04X}◌\u0301")
    assert not {*label} & {*UNSEEN} and not category(f"{label}a"[0]).startswith(("M", "Z", "Cc", "Cf"))
    kinds = kinds_of(Tokenizer.of_characters([unseen]), [0])
    assert kinds == {"0": [f"U+{ord(unseen):04X}"] * 2}


@pytest.mark.parametrize("sign", ["👩\u200d❤\ufe0f\u200d👨", "☂\ufe0f", "👍🏽", "🏳\ufe0f\u200d🌈", "क\u094d\u200dष"])
def test_characters_that_make_one_sign_are_shown_as_that_sign(sign):
    assert printable(sign) == sign
    assert printable(f"\u200d{sign}\u200d") == f"U+200D{sign}U+200D"


NEW = Tokenizer.of_sentences(SENTENCE_WORDS, ("[pad]", "[mask]"), new_words=3)
new_or_known = st.sampled_from(
    [
        "Zorp",
        "ZORP",
        "🏀",
        "👨\u200d👩\u200d👧",
        "👩\u200d❤\ufe0f\u200d👨",
        "O'Brien",
        "Łukasz",
        "小明",
        "МАРИЯ",
        "Мария",
        "+",
    ]
)
new_or_known |= st.sampled_from(["Jose\u0301", "JOS\u00c9", "J\u030cim", "\u01f0im"])
new_or_known |= st.sampled_from([*SENTENCE_WORDS, "mary", "THE", ",", "!"])
texts_with_new = st.lists(new_or_known, max_size=12).map(" ".join)


class TestNewWords:
    @given(st.lists(texts_with_new, min_size=1, max_size=3), st.booleans())
    def test_the_same_word_is_the_same_new_one_in_all_texts_in_the_order_in_which_they_come(self, texts, with_names):
        tokenizer = (NEW.with_names() if with_names else NEW).with_new_words(texts)
        lacking = [word for text in texts for word in text.split() if not is_of_sentence(word) and word not in ",!"]
        expected = list({spelt(word): word for word in reversed(lacking)}.values())
        expected.sort(key=lambda word: [*map(spelt, lacking)].index(spelt(word)))
        assert tokenizer.new_words == tuple(expected[:3])
        assert tokenizer.with_new_words([]).new_words == ()
        assert tokenizer.with_new_words(tokenizer.new_words).new_words == tokenizer.new_words
        places = {spelt(word): len(SENTENCE_WORDS) + place for place, word in enumerate(tokenizer.new_words)}
        for text in texts:
            unknown = [piece.text for piece in tokenizer.unknown_pieces(text)]
            words = text.split()
            assert unknown == [each for each in words if not is_of_sentence(each) and spelt(each) not in places]
            if unknown:
                with pytest.raises(UnknownTokenError) as caught:
                    tokenizer.encode(text)
                is_full = len(tokenizer.new_words) == 3
                assert str(caught.value).endswith(" A text can have up to 3 new words.") == is_full
                continue
            ids = tokenizer.encode(text)
            shown = {spelt(word): word for word in (*SENTENCE_WORDS, *tokenizer.new_words)}
            assert tokenizer.labels(ids) == [printable(shown[spelt(word)]) for word in words]
            assert [token for token in ids if token in places.values()] == [
                places[spelt(word)] for word in words if spelt(word) in places
            ]
            assert tokenizer.encode(tokenizer.decode(ids)) == ids

    def test_alone_each_text_has_its_own_and_without_their_names_they_have_numbers(self):
        assert NEW.new_words == () and NEW.labels(NEW.encode("Zorp went. 🏀")) == ["[new1]", "went", ".", "[new2]"]
        read = NEW.with_new_words(["Zorp"])
        assert read.labels(read.encode("Ana went to ZORP")) == ["[new2]", "went", "to", "Zorp"]
        assert NEW.encode("🏀 went") == NEW.encode("Zorp went") == NEW.encode_continuation("Zorp went")
        assert [piece.text for piece in NEW.unknown_pieces("a b c d A e, [new1]")] == ["d", "e", ",", "[", "new1", "]"]
        read = NEW.with_names()
        assert read.encode("Zorp took-it [mask] Zorp") == [9, 10, read.special_id("[mask]"), 9]

    def test_a_vocabulary_without_a_place_for_them_refuses_them(self):
        assert OF_SENTENCES.with_new_words(["Zorp went"]) is OF_SENTENCES and OF_SENTENCES.new_words == ()
        with pytest.raises(UnknownTokenError, match=r"never seen: 'Zorp' at 1\.$"):
            OF_SENTENCES.encode("Zorp went")

    def test_saved_and_read_again_they_are_free(self, tmp_path):
        NEW.with_new_words(["Zorp"]).save(tmp_path / "tokenizer.json")
        assert Tokenizer.from_file(tmp_path / "tokenizer.json").with_new_words(["Ana"]).new_words == ("Ana",)


def spelt(word: str) -> str:
    return normalize("NFC", word.lower())


def is_of_sentence(word: str) -> bool:
    return word.lower() in map(str.lower, SENTENCE_WORDS)


@given(st.text(), st.integers(256, 300))
def test_a_tokenizer_of_bytes_reads_everything_and_has_merged_what_is_frequent(text, size):
    tokenizer = Tokenizer.of_bytes("the cat sat on the mat, the cat and the hat\n" * 3, size)
    assert 256 <= tokenizer.vocab_size <= size and tokenizer.decode(tokenizer.encode(text)) == text
    if size > 290:
        assert tokenizer.labels(tokenizer.encode("sat the cat")) == ["sat", "␣the", "␣cat"]


@given(st.text(st.sampled_from("añé각\u3042e ç\u304c"), max_size=9), st.integers(0, 9))
def test_an_accent_is_read_however_it_is_typed_and_what_is_unknown_stays_at_its_place(text, place):
    """As one character, or as a letter and its marks, which some keyboards, file names and documents have."""
    for known, typed in (("NFC", "NFD"), ("NFD", "NFC")):
        written, other = normalize(known, text), normalize(typed, text)
        characters = Tokenizer.of_characters(normalize(known, "añé각\u3042e ç\u304c"))
        bpe = Tokenizer(tokenizers.Tokenizer(models.BPE(characters._backend.get_vocab(), [])))
        words = Tokenizer.of_words(written.split() or ["a"])
        for tokenizer in (characters, bpe, words):
            assert tokenizer.encode(other) == tokenizer.encode(written) == tokenizer.encode_continuation(other)
            assert normalize(known, tokenizer.without_unknown(other)) == written
        letters = normalize("NFC", text)  # of which none is cut in two
        snow = normalize(typed, f"{letters[:place]} ☃ {letters[place:]}")
        assert characters.unknown_pieces(snow) == [UnknownPiece("☃", snow.index("☃"))]


def test_a_vocabulary_that_falls_back_on_bytes_knows_everything():
    pieces = ["<unk>", "▁the", "a", *(f"<0x{byte:02X}>" for byte in range(256))]
    model = models.BPE({piece: at for at, piece in enumerate(pieces)}, [], unk_token="<unk>", byte_fallback=True)
    backend = tokenizers.Tokenizer(model)
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
    assert tokenizer.unknown_pieces("two x") == [UnknownPiece("x", 4)]


def test_a_long_text_takes_as_much_longer_as_it_is_longer():
    def seconds(text):
        began = time.thread_time()  # what others on the machine do doesn't count
        assert not {*CHARACTERS.without_unknown(text)} - {*ALPHABET}
        return time.thread_time() - began

    short, long = "a中" * 2_000, "a中" * 40_000
    assert seconds(long) < 20 * 6 * max(min(seconds(short) for _ in range(3)), 1e-3)


@pytest.mark.parametrize(
    ("tokenizer", "text"),
    [
        *((CHARACTERS, ALPHABET), (BPE, "lowest new"), (OF_WORDS, "TWO hundred-one")),
        *((BRACKETS, "a [pad] [end]"), (OF_SENTENCES, "who has the park ? Mary went."), (BYTES, "the ñ")),
    ],
    ids=range(6),
)
def test_what_was_saved_is_what_is_loaded(tokenizer, text, tmp_path):
    tokenizer.save(tmp_path / "tokenizer.json")
    loaded, ids = Tokenizer.from_file(tmp_path / "tokenizer.json"), tokenizer.encode(text)
    assert (loaded.vocab_size, loaded.special, loaded.encode(text)) == (tokenizer.vocab_size, tokenizer.special, ids)
    some = [*tokenizer.special.values(), *ids]
    assert loaded.decode(some) == tokenizer.decode(some) and loaded.labels(some) == tokenizer.labels(some)
    for first in (True, False):
        assert [loaded.piece(token, first=first) for token in some] == [
            tokenizer.piece(token, first=first) for token in some
        ]


def test_a_file_that_cuts_or_fills_texts_does_so_no_longer():
    backend = tokenizers.Tokenizer.from_str(CHARACTERS.to_json())
    backend.enable_truncation(2)
    backend.enable_padding(length=9, pad_token="a")
    assert Tokenizer(backend).encode("abc") == CHARACTERS.encode("abc")


@pytest.mark.parametrize("content", ["", "{}", "[]", "null", "{", '{"model": {"type": "BPE"}}', "\x00\xff", None])
def test_a_file_that_is_none_is_refused(content, tmp_path):
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"tokenizer\.json is not a tokenizer file"):
        Tokenizer.from_file(path)


def split(pattern):
    return {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}}


def normalized(*steps):
    return {"normalizer": {"type": "Sequence", "normalizers": steps}}


def replaced(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


def table(made):
    """A table of SentencePiece's that makes this of some character."""
    return base64.b64encode(bytes([4, 0, 0, 0]) + bytes(4) + made.encode() + b"\0").decode()


BYTE_LEVEL = {"type": "ByteLevel"}
PREDICTABLE = {
    "as words and sentences are cut": json.loads(Tokenizer.of_sentences(["Mary", "went"]).to_json()),
    "Llama": normalized({"type": "Prepend", "prepend": "▁"}, replaced({"String": " "}, "▁")),
    "T5": normalized({"type": "Precompiled", "precompiled_charsmap": table("ﷺ")}, replaced({"Regex": " {2,}"}, " ")),
    "bytes": {
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                split(r"\p{N}{1,3}")["pre_tokenizer"],
                {**BYTE_LEVEL, "add_prefix_space": False, "trim_offsets": True},
            ],
        },
    },
}
TRIED = {"Llama 3": split(CUTS["llama3"].patterns[0])}
SLOW = {
    "a repeated repetition": (split("(a+)+$"), "it fails"),
    "words that begin with others": (split("(?:foo|foobar|bar)*!"), "it fails"),
    "white space": (split(r"(\s|\n)*x"), "it fails"),
    "in a decoder": ({"decoder": replaced({"Regex": "(x+x+)+y"}, "")}, "it fails"),
    "doubling": (normalized(*[replaced({"String": "a"}, "aa")] * 12), "more than 50 characters of one"),
    "doubling what is rare": (normalized(*[replaced({"Regex": r"\x{A66E}"}, "ꙮꙮ")] * 40), "too much time, memory"),
    "bytes of bytes": (normalized(*[BYTE_LEVEL] * 40), "too much time, memory or room"),
    "very long": (normalized(replaced({"String": "a"}, "b" * 10_000)), "by 10,000 characters"),
    "a table of very long": (
        normalized({"type": "Precompiled", "precompiled_charsmap": table("b" * 10_000)}),
        "10,000",
    ),
    "long words": ({"model": {"type": "WordPiece", "max_input_chars_per_word": 10**9}}, "words of more than 1,000"),
}


def written_with(ways, path):
    path.write_text(json.dumps({**json.loads(CHARACTERS.to_json()), **ways}), encoding="utf-8")
    return path


def test_a_tokenizer_known_to_take_its_time_is_built_at_once_others_are_tried_first(monkeypatch):
    for ways in TRIED.values():
        foreign_tokenizer.refuse_slow(ways)
    monkeypatch.setattr(foreign_tokenizer, "answer_of", None)
    for ways in PREDICTABLE.values():
        foreign_tokenizer.refuse_slow(ways)


@pytest.mark.parametrize(("ways", "why"), SLOW.values(), ids=SLOW)
def test_a_tokenizer_that_would_hang_the_process_is_refused(ways, why, tmp_path):
    path = written_with(ways, tmp_path / "tokenizer.json")
    with pytest.raises(ValueError, match=rf"tokenizer\.json can't be used: .*(?:{why})"):
        Tokenizer.from_file(path)


def test_what_a_tokenizer_fails_on_is_a_sentence_and_no_panic():
    backend = tokenizers.Tokenizer.from_str(CHARACTERS.to_json())
    backend.pre_tokenizer = pre_tokenizers.Split(tokenizers.Regex("(a+)+$"), "isolated")
    tokenizer = Tokenizer(backend)
    for take in (tokenizer.encode, tokenizer.encode_continuation, tokenizer.unknown_pieces):
        with pytest.raises(ValueError, match="This model's tokenizer fails on this text"):
            take("a" * 40 + "b")
