"""Tests the pages with an encoder–decoder: source, target, and three kinds of attention."""

import pytest

from pages.ui.models import library
from tests import app_driver as app
from tests.app_driver import choose, given, go, ids_of, link_of, looked_at, overview, said, start, step, text_of, write
from tests.tiny_models import save_tiny, save_translator
from transformer.data.tasks import TASKS

pytestmark = pytest.mark.usefixtures("folder")

SOURCE = "two hundred and five"
TASK = TASKS["number-words"]
END = TASK.tokenizer.special_id("[end]")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A translator, and a model that sorts, both of random weights."""
    folder = tmp_path_factory.mktemp("checkpoints")
    save_translator(folder)
    save_tiny(folder, "shakespeare", title="Shakespeare", group="Texts")
    save_tiny(folder, "average", title="Average", group="Ladder", attention="uniform", n_layers=1, n_heads=1)
    return folder


def greedy(count=8, source=SOURCE):
    """What the translator writes: ids, the start token not among them."""
    begin = [library.model("translator").card.start_token_id]
    steps = app.generated("translator", begin, count, source=app.ids(source, "translator"), temperature=0)
    return [step.token_id for step in steps]


def strip(at):
    """The tokens on the page Generate, source first."""
    about = app.writing(at).metadata
    return [about["kinds"][str(token)][0] for token in [*about["source"], *about["prompt"], *ids_of(at)]]


def test_the_prompt_is_a_source_and_the_target_is_streamed():
    at = start(model="translator", temperature=0, tokens=5)
    assert at.text_area[0].label == "Source"
    assert app.prompt(at) == SOURCE
    assert strip(at) == [*SOURCE.split(), "[start]"] and "→" in given(at)["arrow"]
    write(at)
    expected = greedy(5)
    assert strip(at)[5:] == TASK.tokenizer.labels(expected)
    assert text_of(at) == TASK.tokenizer.decode(expected)
    assert app.checked(at.run()) and text_of(start(**link_of(at))) == text_of(at)


def test_the_attention_that_is_shown_beside_the_text_can_be_changed():
    at = start(model="translator", layer=0, head=1)
    assert app.dials(at).items() >= {"attention": "cross", "layer": 0, "head": 1}.items()
    modules = {"decoder": ["decoder.blocks.0.attn"], "cross": ["decoder.blocks.0.cross_attn"]}
    assert given(at)["modules"] == modules
    app.turn(at, attention="decoder")
    assert link_of(at)["attention"] == app.dials(at)["attention"] == "decoder"


def test_a_token_of_the_target_can_be_looked_at_and_replaced():
    at = write(start(model="translator", temperature=0, tokens=3))
    app.checked(app.look_at(at, step=2).run())  # start token, first word, and this one
    assert link_of(at)["step"] == "2" and not said(at)
    ids = ids_of(at)
    app.show_text(at, [ids[0], other := (ids[1] + 1) % 83])
    assert strip(at)[-1] == TASK.tokenizer.label(other)
    again = start(**link_of(at))
    assert ids_of(again) == ids_of(at) and strip(again) == strip(at)


def test_writing_ends_with_the_end_token_which_a_link_and_a_reload_keep():
    at = start(model="translator", temperature=0, tokens=30)
    model = library.model("translator").model

    def prefer_the_end(module, inputs, output):
        output = output.clone()
        output[..., END] += 100.0
        return output

    write(at, 3)
    handle = model.unembed.register_forward_hook(prefer_the_end)
    try:
        write(at)
    finally:
        handle.remove()
    assert ids_of(at)[3:] == [END] == list(given(at)["ends"]) and strip(at)[-1] == "[end]"
    again = start(**link_of(at))
    assert ids_of(again) == ids_of(at) and strip(again)[-1] == "[end]"


NO_NUMBERS = {
    "205": "two hundred and five",
    "five two": "isn't one",
    "two hundred five": "written like this: two hundred and five",
    "two hundred and fish": "never seen “`fish`”",
    "": "The prompt is empty",
    "-,- ": "isn't one",
}


@pytest.mark.parametrize("page", ["Generate", "Attention"])
def test_what_is_no_number_is_answered_with_what_would_do(page):
    at = start(page, model="translator")
    for typed, sentence in NO_NUMBERS.items() if page == "Generate" else [("five two", "isn't one")]:
        at = app.type_prompt(at, typed)
        assert sentence in said(at) and app.prompt(at) == typed
        assert text_of(app.type_prompt(at, "forty-two")) == "" and not at.error


def test_a_source_longer_than_the_model_reads_is_refused(tmp_path, monkeypatch):
    save_translator(tmp_path, context_length=3)
    app.use(monkeypatch, tmp_path)
    at = start(model="translator")
    assert "4 tokens, and this model reads at most 3. Take 1 away" in said(at)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_each_attention_is_shown_with_its_own_labels(kind):
    """Of the start token and what is written, all but the end token."""
    at = start("Attention", model="translator", attention=kind, head=1)
    target = [library.model("translator").card.start_token_id, *greedy(11)]
    target = target[:-1] if target[-1] == END else target
    asked, about, source = given(at)["request"], overview(at).metadata, app.ids(SOURCE, "translator")
    assert (asked["tokens"], asked["source"]) == tuple(",".join(map(str, each)) for each in (target, source))
    labels = TASK.tokenizer.labels
    assert about["labels"] == {"text": labels(target), "source": labels(source)} and about["kind"] == kind
    assert about["offsets"] == {"queries": 0, "keys": 0}


@pytest.mark.parametrize("count", [0, 3])
def test_of_cross_attention_the_tokens_are_known_that_queries_chose(count):
    """What was written, or else what the model would write. What follows the newest token isn't known yet."""
    at = start(model="translator", temperature=0, tokens=3)
    if count:
        write(at)
    go(at, "Attention")
    written = greedy(3) if count else greedy(11)
    about = overview(at).metadata
    assert about["kind"] == "cross"
    chosen = TASK.tokenizer.labels(written)
    assert about["next"] == chosen[: about["queries"]]
    assert about["labels"]["text"] == ["[start]", *chosen][: about["queries"]]
    for kind in ("encoder", "decoder"):
        choose(at, "Attention", kind)
        assert overview(at).metadata["next"] is None


def test_the_attention_can_be_changed_and_its_layers_are_its_own():
    at = start("Attention", model="translator", attention="encoder", layer=1)
    assert len(overview(at).metadata["modules"]) == 2 and looked_at(at)["layer"] == 1
    choose(at, "Attention", "cross")
    assert len(overview(at).metadata["modules"]) == 1 and looked_at(at)["layer"] == 0
    assert "the last one, 0, is shown" in said(at)


def test_another_attention_is_another_pass_with_another_cell():
    at = start("Attention", model="translator", query=1, key=2, zoom="0,2,0,3")
    assert looked_at(at)["key"] == 2 and looked_at(at)["zoom"]
    choose(at, "Attention", "decoder")
    assert overview(at).metadata["kind"] == "decoder"
    assert [looked_at(at)[name] for name in ("query", "key", "zoom")] == [None] * 3
    assert not {"query", "key", "zoom"} & link_of(at).keys()


def test_uniform_attention_is_shown_without_scores():
    start("Generate", model="average")
    start("Positions", model="average")
    at = start("Attention", model="average")
    assert overview(at).metadata["uniform"]
    assert [name.partition("[")[0] for name in app.parts(at).tensors] == ["blocks.0.attn.hook_v"]


def test_the_positions_of_an_encoder_decoder_are_its_table():
    at = start("Positions", model="translator")
    assert any("translator" in heading.value.lower() for heading in [*at.header, *at.caption, *at.markdown])


def test_models_are_listed_group_by_group():
    at = start()
    assert app.named(at.selectbox, "Model").options == ["Shakespeare", "Translator", "Ladder · Average"]
    choose(at, "Model", "translator")
    assert app.prompt(at) == SOURCE
    assert "2 encoder layers + 1 decoder layer × 2 heads" in " ".join(c.value for c in at.caption)
    step(at)
    choose(at, "Model", "average")
    assert link_of(at)["model"] == "average" and not text_of(at)
