"""Tests that tensors over HTTP equal the engine's, bit for bit."""

import numpy as np
import pytest

from tests.api.conftest import SHAPES
from transformer import Recording, Scale, Without, in_window, record_pass, to_code
from transformer.api import cache, tensors
from transformer.data.chat import Chat

TEXTS = {"translator": "two hundred and five", "deep-translator": "forty-two", "chatty": "the cat"}


def expected_of(library, name):
    """A text for a model, and the pass over it as the engine computes it."""
    text = TEXTS.get(name, "To be, or not")
    checkpoint = library.open(name).checkpoint
    tokens, source = checkpoint.tokenizer.encode(text), ()
    if name in ("translator", "deep-translator"):
        tokens, source = [checkpoint.card.start_token_id], tokens
    return text, record_pass(checkpoint.model, tokens, source)


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    """Whether two arrays are equal to the last bit; truth values travel as bytes."""
    return found.tobytes() == (expected.astype(np.uint8) if expected.dtype == bool else expected).tobytes()


def get(client, path="/tensors", **parameters):
    response = client.get(path, params=parameters)
    assert response.status_code == 200, response.text
    return Recording.from_bytes(response.content)


@pytest.fixture(params=["whole", "by block"])
def _either_way(request, monkeypatch):
    if request.param == "by block":
        monkeypatch.setattr(tensors, "WHOLE_BELOW", 0)


@pytest.mark.parametrize("name", [*SHAPES, *TEXTS])
@pytest.mark.usefixtures("_either_way")
def test_every_tensor_is_the_engine_s_to_the_last_bit(name, library, client):
    text, expected = expected_of(library, name)
    names = [each for each in expected.tensors if each not in ("encoder.embed.weight", "decoder.embed.weight")]
    together = {}
    for start in range(0, len(names), 40):
        together |= get(client, model=name, text=text, names=names[start : start + 40]).tensors
    assert together.keys() == set(names)
    cache.clear()
    for each in names[:: len(names) // 8]:  # and alone
        alone = get(client, model=name, text=text, names=[each, each]).tensors
        assert same(alone[each], expected.tensors[each]), each
    for each in names:
        assert same(together[each], expected.tensors[each]), each


@pytest.mark.parametrize("begin", [0, 3])
def test_a_changed_pass_is_the_engine_s(client, library, begin):
    checkpoint = library.open("rotary").checkpoint
    silenced, doubled = Scale("blocks.0.attn.hook_z", 1, 4, 0.0), Scale("blocks.1.hook_mlp_out", None, None, 2.0)
    changes = (silenced, doubled, Without("mask"))
    tokens = checkpoint.tokenizer.encode("To be, or not")
    expected = record_pass(checkpoint.model, tokens, interventions=in_window(changes, begin)).tensors
    plain = record_pass(checkpoint.model, tokens).tensors
    asked = {"model": "rotary", "text": "To be, or not", "changes": "!".join(map(to_code, changes)), "begin": begin}
    for name in ("blocks.0.attn.hook_z", "blocks.1.attn.hook_pattern", "logits"):
        found = get(client, names=[name], **asked).tensors[name]
        assert same(found, expected[name]) and not same(found, plain[name])


def test_tokens_ask_what_their_text_asks(client, library):
    for name, text in {"rotary": "To be", "translator": "forty-two"}.items():
        checkpoint = library.open(name).checkpoint
        ids = ",".join(map(str, checkpoint.tokenizer.encode(text)))
        start = checkpoint.card.start_token_id
        given = {"tokens": ids} if start is None else {"tokens": start, "source": ids}
        one = client.get("/tensors", params={"model": name, "text": text, "names": "logits"})
        other = client.get("/tensors", params={"model": name, "names": "logits", **given})
        assert one.content == other.content and one.status_code == 200


def test_a_chat_is_read_in_its_template(client, library):
    plain, chat = (
        get(client, model="chatty", text="the cat", reads=reads, names=["hook_embed"]) for reads in ("plain", "chat")
    )
    assert len(chat.tensors["hook_embed"]) > len(plain.tensors["hook_embed"])
    checkpoint = library.open("chatty").checkpoint
    read = Chat(**checkpoint.card.chat).tokens(checkpoint.tokenizer, "the cat")
    assert same(chat.tensors["hook_embed"], record_pass(checkpoint.model, read).tensors["hook_embed"])
