"""Tests the pages with an encoder–decoder: source, target, and three kinds of attention."""

import pytest

from pages.ui.models import library
from tests import app_driver as app
from tests.app_driver import given, go, ids_of, link_of, looked_at, overview, said, start, text_of, write
from tests.tiny_models import save_tiny, save_translator
from transformer.data.tasks import TASKS

pytestmark = pytest.mark.usefixtures("folder")

SOURCE = "two hundred and five"
TOKENIZER = TASKS["number-words"].tokenizer
END = TOKENIZER.special_id("[end]")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    save_translator(folder)
    save_tiny(folder, "shakespeare", title="Shakespeare", group="Texts")
    save_tiny(folder, "average", title="Average", group="Ladder", attention="uniform", n_layers=1, n_heads=1)
    return folder


NOT_WRITTEN = (
    "A row shows what the decoder attended to in the source when it chose the token after the arrow. "
    "The text isn't written yet: the model would write it."
)


def greedy(count):
    """What the translator writes: ids, the start token not among them."""
    begin = [library.model("translator").card.start_token_id]
    steps = app.generated("translator", begin, count, source=app.ids(SOURCE, "translator"), temperature=0)
    return [step.token_id for step in steps]


def strip(at):
    """The tokens on the page Generate, source first."""
    about = app.writing(at).metadata
    return [about["kinds"][str(token)][0] for token in [*about["source"], *about["prompt"], *ids_of(at)]]


def test_the_prompt_is_a_source_and_the_target_is_streamed_and_can_be_changed():
    at = start(model="translator", temperature=0, tokens=5, layer=0, head=1)
    assert app.prompt(at) == SOURCE
    assert strip(at) == [*SOURCE.split(), "[start]"] and "→" in given(at)["arrow"]
    write(at)
    expected = greedy(5)
    assert strip(at)[5:] == TOKENIZER.labels(expected) and text_of(at) == TOKENIZER.decode(expected)
    app.checked(app.look_at(at, step=2).run())  # start token, first word, and this one
    assert link_of(at)["step"] == "2" and not said(at)
    app.show_text(at, [expected[0], other := (expected[1] + 1) % 83])
    assert strip(at)[-1] == TOKENIZER.label(other)
    again = start(**link_of(at))
    assert ids_of(again) == ids_of(at) and strip(again) == strip(at)
    assert app.dials(at).items() >= {"attention": "cross", "layer": 0, "head": 1}.items()
    modules = {"decoder": ["decoder.blocks.0.attn"], "cross": ["decoder.blocks.0.cross_attn"]}
    assert given(at)["modules"] == modules
    app.turn(at, attention="decoder")
    assert link_of(at)["attention"] == app.dials(at)["attention"] == "decoder"


def test_writing_ends_with_the_end_token_which_a_link_and_a_reload_keep():
    at = start(model="translator", temperature=0, tokens=30)

    def prefer_the_end(module, inputs, output):
        output = output.clone()
        output[..., END] += 100.0
        return output

    write(at, 3)
    handle = library.model("translator").model.unembed.register_forward_hook(prefer_the_end)
    try:
        write(at)
    finally:
        handle.remove()
    assert ids_of(at)[3:] == [END] == list(given(at)["ends"]) and strip(at)[-1] == "[end]"
    again = start(**link_of(at))
    assert ids_of(again) == ids_of(at) and strip(again)[-1] == "[end]"


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("five two", "isn't one"),
        ("two hundred five", "written like this: two hundred and five"),
        ("two hundred and fish", "never seen “fish”"),
        ("", "The prompt is empty"),
        ("-,- ", "isn't one"),
    ],
)
def test_what_is_no_number_is_answered_with_what_would_do(typed, sentence):
    at = start("Attention", model="translator", prompt=typed)
    assert sentence in said(at)
    assert not said(app.type_prompt(at, "forty-two")).replace(NOT_WRITTEN, "")


def test_a_source_longer_than_the_model_reads_is_refused(tmp_path, monkeypatch):
    save_translator(tmp_path, context_length=3)
    app.use(monkeypatch, tmp_path)
    assert "4 tokens, and this model reads at most 3. Take 1 away" in said(start(model="translator"))


@pytest.mark.parametrize("count", [0, 3])
def test_each_attention_is_shown_with_its_own_labels_and_layers(count):
    """Of what was written, or else of what the model would write. What follows the newest token isn't known yet."""
    at = start(model="translator", temperature=0, tokens=3)
    if count:
        write(at)
    go(at, "Attention")
    written = greedy(3) if count else greedy(11)
    source, begin = app.ids(SOURCE, "translator"), library.model("translator").card.start_token_id
    target = [begin, *(token for token in written if token != END)]
    chosen = TOKENIZER.labels(written)
    for kind, layers in (("cross", 1), ("encoder", 2), ("decoder", 1)):
        app.look_at(at, attention=kind)
        about = overview(at).metadata
        assert about["kind"] == kind and len(about["modules"]) == layers
        assert given(at)["request"] == app.request_of("translator", target, source)
        assert about["labels"] == {"text": TOKENIZER.labels(target), "source": TOKENIZER.labels(source)}
        assert about["next"] == (chosen[: about["queries"]] if kind == "cross" else None)
        assert about["offsets"] == {"queries": 0, "keys": 0}


def test_another_attention_is_another_pass_with_another_cell_and_its_own_layers():
    at = start("Attention", model="translator", attention="encoder", layer=1, query=1, key=2, zoom="0,2,0,3")
    assert looked_at(at)["key"] == 2 and looked_at(at)["zoom"] and looked_at(at)["layer"] == 1
    view = app.shown(at)
    (choice,) = [each for each in view["choices"] if each["name"] == "attention"]
    app.look_at(at, attention=None, **dict.fromkeys(choice["resets"]))
    assert looked_at(at)["layer"] == 0 and "the last one, 0, is shown" in said(at)
    assert [looked_at(at)[name] for name in ("query", "key", "zoom")] == [None] * 3
    assert not {"query", "key", "zoom"} & link_of(at).keys()


def test_uniform_attention_is_shown_without_scores():
    at = start("Attention", model="average")
    listed = [(entry["title"], entry["group"]) for entry in app.told_of(at)["catalogue"]]
    assert listed == [("Shakespeare", "Texts"), ("Translator", "Tasks"), ("Average", "Ladder")]
    assert overview(at).metadata["uniform"]
    assert [name.partition("[")[0] for name in app.parts(at).tensors] == ["blocks.0.attn.hook_v"]
