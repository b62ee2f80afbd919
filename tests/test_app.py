"""The app without a browser: every page alone and through app.py, links, prompts, damaged models, and the numbers."""

import base64
import json
import re
import shutil
import time
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pytest
import streamlit as st
import torch
from streamlit.testing.v1 import AppTest

from pages.ui.markdown import JOINER
from pages.ui.models import library
from tests.tiny_models import CONTEXT, EXAMPLES, save_pair, save_tiny, truncate
from transformer import Sampling, generate, save_checkpoint, sinusoidal_encoding

ROOT = Path(__file__).parents[1]
PAGES = {"Generate": "app.py", "Attention": "pages/Attention.py", "Masks": "pages/Masks.py",
         "Positions": "pages/Positions.py"}
every_page = pytest.mark.parametrize("page", PAGES)
every_entrance = pytest.mark.parametrize("alone", [False, True], ids=["through app.py", "alone"])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A folder with two tiny models under the names of the shipped ones."""
    folder = tmp_path_factory.mktemp("checkpoints")
    save_pair(folder)
    return folder


@pytest.fixture(autouse=True)
def folder(tiny, monkeypatch):
    use(monkeypatch, tiny)
    return tiny


def use(monkeypatch, folder):
    """Let the app find its models in this folder."""
    monkeypatch.setattr(library, "FOLDER", folder)
    st.cache_data.clear()
    st.cache_resource.clear()


def start(page="Generate", alone=False, **link):
    """A visitor who opens a page, perhaps by a link."""
    if alone:
        at = AppTest.from_file(str(ROOT / PAGES[page]), default_timeout=120)
    else:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
        at.switch_page(PAGES[page])
    for name, value in link.items():
        at.query_params[name] = str(value)
    return checked(at.run())


def go(at, page):
    at.switch_page(PAGES[page])
    return checked(at.run())


def checked(at):
    assert not at.exception, [error.message for error in at.exception]
    return at


def named(elements, label):
    (found,) = [element for element in elements if element.label == label]
    return found


def press(at, label):
    return checked(named(at.button, label).click().run())


def choose(at, label, value):
    return checked(named(at.selectbox, label).set_value(value).run())


def dial(at, label):
    """A dial of the page Generate or Attention: they are called the same on both."""
    return named(at.selectbox, label)


def type_prompt(at, text):
    return checked(at.sidebar.text_area[0].set_value(text).run())


def prompt(at):
    return at.sidebar.text_area[0].value


def said(at):
    """All sentences that inform, warn or report an error, without what keeps Markdown away."""
    boxes = [*at.info, *at.warning, *at.error, *at.sidebar.warning, *at.sidebar.error]
    return re.sub(rf"\\(?=[^\w\s])|{JOINER}", "", " ".join(box.value for box in boxes))


def link_of(at):
    """The parameters that the page has put into the address bar."""
    written = [json.loads(c.proto.json) for c in at.get("bidi_component")
               if c.proto.component_name == "headsup_address"]  # fmt: skip
    newest = max(written, key=lambda data: data["at"])
    return dict(parse_qsl(newest["query"], keep_blank_values=True))


def text_of(at):
    return link_of(at).get("text", "")


def write(at):
    """Press Generate and wait for the last token."""
    press(at, "Generate")
    deadline = time.monotonic() + 100
    while not named(at.button, "Stop").disabled:
        assert time.monotonic() < deadline
        checked(at.run())
    return at


def component(at, name):
    (found,) = [c.proto for c in at.get("bidi_component") if c.proto.component_name == name]
    return found


def live_text(at):
    """What the page Generate shows, as it goes to the browser."""
    return json.loads(component(at, "headsup_live_text_feed").json)


def figure(at, key):
    (spec,) = [chart.proto.spec for chart in at.get("plotly_chart") if chart.proto.id.endswith(f"-{key}")]
    return json.loads(spec)


def numbers(trace):
    """A trace's z as an array, whether Plotly packed it or not."""
    z = trace["z"]
    if isinstance(z, list):
        return np.array(z, dtype=float)
    shape = [int(size) for size in z["shape"].split(",")]
    return np.frombuffer(base64.b64decode(z["bdata"]), dtype=z["dtype"]).reshape(shape)


def drawn(at, key, name):
    """The numbers of a figure's trace; NaN where nothing is drawn."""
    (trace,) = [t for t in figure(at, key)["data"] if (t["type"], t.get("name")) == ("heatmap", name)]
    return numbers(trace)


def markdown_with(at, words):
    (found,) = [element.value for element in at.markdown if words in element.value]
    return found


def cache_of(name, text):
    """The model's own tensors for a text, not by way of the app."""
    checkpoint = library.model(name)
    tokens = checkpoint.tokenizer.encode(text)[-checkpoint.model.config.context_length :]
    with torch.no_grad():
        return checkpoint.model.run_with_cache(torch.tensor([tokens]))[1]


# The first look


@every_page
def test_the_shipped_models_work(page, monkeypatch):
    use(monkeypatch, ROOT / "checkpoints")
    at = start(page)
    model = at.sidebar.selectbox[0]
    assert model.value == "shakespeare" and "Martín Fierro" in model.options
    assert prompt(at) == library.usable()["shakespeare"].card.examples[0]
    assert not said(at)
    if page == "Generate":
        assert len(text_of(press(at, "Step"))) >= 1
    else:
        assert at.get("plotly_chart")
    choose(at, "Model", "martin-fierro")
    assert prompt(at) == library.usable()["martin-fierro"].card.examples[0]
    assert not said(at)


@every_entrance
@every_page
def test_the_first_look_has_a_model_a_prompt_and_something_computed(page, alone):
    at = start(page, alone)
    assert at.title[0].value == page
    assert named(at.selectbox, "Model").value == "shakespeare"
    assert prompt(at) == EXAMPLES[0]
    assert not said(at)
    if page == "Generate":
        odds = live_text(at)["candidates"]["probability"]
        assert len(odds) == 10 and 0 < sum(odds) <= 1
    else:
        assert len(at.get("plotly_chart")) >= 4
    assert link_of(at) == {"model": "shakespeare", "prompt": EXAMPLES[0]}


# What belongs to the visitor survives a change of page


def test_another_model_brings_its_own_prompt_to_every_page():
    at = write(start(tokens=5, layer=1, head=1))
    choose(at, "Model", "martin-fierro")
    for page in ("Attention", "Positions", "Generate"):
        assert prompt(at) == "Aquí me pongo"
        assert link_of(at) == {"model": "martin-fierro", "prompt": "Aquí me pongo", "tokens": "5"}
        go(at, page)
        assert named(at.selectbox, "Model").value == "martin-fierro"
    assert not said(at)


def test_choices_survive_a_change_of_page():
    at = start()
    named(at.number_input, "Seed").set_value(42)
    named(at.slider, "Temperature").set_value(1.25)
    named(at.slider, "Top-k").set_value(7)
    named(at.slider, "Number of tokens").set_value(9)
    dial(at, "Layer").set_value(1)
    dial(at, "Head").set_value(1)
    type_prompt(at, "KING:\nI am")
    write(at)
    text = text_of(at)
    go(at, "Attention")
    assert (dial(at, "Layer").value, dial(at, "Head").value) == (1, 1)
    checked(named(at.get("button_group"), "Text").set_value("all").run())
    choose(at, "Head", 0)
    go(at, "Positions")
    assert prompt(at) == "KING:\nI am"
    named(at.slider, "Length: positions").set_value(20)
    checked(named(at.slider, "Width: d_model").set_value(8).run())
    go(at, "Generate")
    assert prompt(at) == "KING:\nI am" and text_of(at) == text
    assert named(at.number_input, "Seed").value == 42
    assert named(at.slider, "Temperature").value == 1.25
    assert named(at.slider, "Top-k").value == 7
    assert named(at.slider, "Number of tokens").value == 9
    assert (dial(at, "Layer").value, dial(at, "Head").value) == (1, 0)
    go(at, "Attention")
    assert named(at.get("button_group"), "Text").value == "all"
    go(at, "Positions")
    assert named(at.slider, "Length: positions").value == 20
    assert named(at.slider, "Width: d_model").value == 8
    assert not said(at)


@every_entrance
@every_page
def test_a_link_opens_the_same_state_on_every_page(page, alone):
    at = write(start(tokens=12, seed=5, temperature=1.5, prompt="KING:\nAye"))
    text = text_of(at)
    link = link_of(at) | {"layer": "1", "head": "1", "step": str(len("KING:\nAye") + 3), "scope": "all", "query": "9",
                          "key": "7", "length": "20", "position": "7", "dimension": "3"}  # fmt: skip
    other = start(page, alone, **link)
    assert link_of(other) == link
    assert not said(other)
    for again in PAGES:
        if alone and again != page:
            continue
        if not alone:
            go(other, again)
        assert prompt(other) == "KING:\nAye"
        if again == "Generate":
            shown = live_text(other)
            assert shown["selected"] == len("KING:\nAye") + 3
            assert shown["flags"] == "p" * len("KING:\nAye") + "w" * len(text)
            assert shown["where"] == "layer 1, head 1"
            assert named(other.number_input, "Seed").value == 5
        elif again == "Attention":
            assert (dial(other, "Layer").value, dial(other, "Head").value) == (1, 1)
            assert dial(other, "Query (row)").value == 9
            assert dial(other, "Key (column)").value == 7
        elif again == "Positions":
            assert named(other.slider, "Length: positions").value == 20
            assert named(other.number_input, "Position").value == 7
            assert named(other.number_input, "Dimension").value == 3
    assert link_of(other) == link


@every_page
def test_the_link_to_copy_is_the_address(page):
    at = start(page, layer=1, prompt="To be?\n& not=1")
    address = next(block.value for block in at.sidebar.code)
    assert "?model=shakespeare&prompt=To+be%3F%0A%26+not%3D1" in address
    assert address.endswith("&layer=1")


# Links that can't be followed


ASKS_TOO_MUCH = {"model": "hal9000", "layer": 99, "head": 7, "temperature": "abc", "step": 10**9, "seed": "nan",
                 "length": -1, "prompt": "é", "text": "é"}  # fmt: skip


@every_entrance
@every_page
def test_a_link_that_asks_for_too_much_is_answered_on_every_page(page, alone):
    at = start(page, alone, **ASKS_TOO_MUCH)
    assert {name for name in ASKS_TOO_MUCH if f"{name} = “" in said(at)} == {"temperature", "step", "seed", "length"}
    assert "There is no model “hal9000” here" in said(at)
    assert "There is no layer 99 here" in said(at) and "There is no head 7 here" in said(at)
    assert "never seen “`é`” (character 1)" in said(at)
    press(at, "Remove what it can't read")
    press(at, "OK")
    assert said(at).startswith("The prompt is empty.")
    type_prompt(at, "Hi")
    assert "The link's text has characters this model has never seen; it was left out." in said(at)


@pytest.mark.parametrize("page", ["Generate", "Attention"])
@pytest.mark.parametrize(
    ("link", "sentence"),
    [
        ({"model": "hal9000"}, "There is no model “hal9000” here; Shakespeare is shown."),
        ({"model": "../../../etc"}, "There is no model “../../../etc” here; Shakespeare is shown."),
        ({"layer": 99}, "There is no layer 99 here; the last one, 1, is shown."),
        ({"head": 7}, "There is no head 7 here; the last one, 1, is shown."),
        ({"temperature": "abc"}, "temperature = “abc”, but the temperature must be a number from 0 to 2."),
        ({"step": 10**9}, "step = “1000000000”, but the step must be a number from 0 to 1,000,000."),
        ({"step": 999}, "Nothing is written at place 999 of the text; the end is shown."),
        ({"step": 2}, "Nothing is written at place 2 of the text; the end is shown."),
        ({"seed": "nan"}, "the seed must be a number from 0 to 2,147,483,647"),
        ({"scope": "<b>"}, "scope = “<b>”, but it can be prompt, all."),
        ({"text": "é"}, "The link's text has characters this model has never seen; it was left out."),
    ],
    ids=str,
)
def test_a_link_that_asks_for_too_much_is_answered_with_a_sentence(page, link, sentence):
    at = start(page, **link)
    assert sentence in said(at)
    assert named(at.selectbox, "Model").value == "shakespeare"
    assert link_of(start(page, **link_of(at))) == link_of(at)
    press(at, "OK")
    assert not said(at)


def test_a_link_can_bring_no_picture_from_elsewhere():
    for name in ("temperature", "model", "pace"):
        at = start(**{name: "![x](http://a.b/c.png)\n\n# big"})
        (warning,) = at.warning
        assert "![" not in warning.value and "\n" not in warning.value


# Prompts


@pytest.mark.parametrize("page", ["Generate", "Attention"])
@pytest.mark.parametrize(
    ("typed", "named_as", "left"),
    [
        ("Romé", "“`é`” (character 4)", "Rom"),
        ("a😀b😀", "“`😀`” (character 2), “`😀`” (character 4)", "ab"),
        ("\tx", "“`⇥`” (character 1)", "x"),
        ("<script>alert(1)</script>ß", "“`ß`” (character 26)", "<script>alert(1)</script>"),
        ("[x]@", "“`[`” (character 1), “`]`” (character 3), “`@`” (character 4)", "x"),
        ("中" * 9, "(character 6), and 3 more", ""),
    ],
)
def test_what_the_model_has_never_seen_is_named_and_can_be_removed(page, typed, named_as, left):
    at = type_prompt(start(page), typed)
    (error,) = at.error
    assert error.value.startswith("This model has never seen") and named_as in error.value
    assert prompt(at) == typed
    assert not at.get("plotly_chart") and not at.main.get("bidi_component")
    press(at, "Remove what it can't read")
    assert prompt(at) == left
    assert not at.error
    assert ("The prompt is empty." in said(at)) == (not left)


@every_page
def test_markup_in_a_prompt_is_text(page):
    typed = "<script>*_$`"
    at = type_prompt(start(page), typed)
    assert prompt(at) == typed
    assert not said(at)
    for element in at.markdown:
        assert not element.proto.allow_html
    assert not [block for block in at.get("html") if "script" in block.proto.body]
    for chart in at.get("plotly_chart"):
        assert "<script" not in chart.proto.spec
    if page == "Generate":
        shown = live_text(at)
        assert "".join(shown["kinds"]["label"][kind] for kind in shown["kind"]) == typed
    if page == "Attention":
        last = markdown_with(at, "The query of")
        assert last.startswith(f"The query of `` ` `` at place {len(typed) - 1} ")


@every_page
def test_an_empty_prompt_is_explained(page):
    at = type_prompt(start(page), "")
    assert "The prompt is empty." in said(at)
    assert link_of(at)["prompt"] == ""
    assert "The prompt is empty." in said(start(page, **link_of(at)))
    press(at, "To be, or not")
    assert prompt(at) == "To be, or not" and not said(at)


@every_page
def test_a_prompt_longer_than_the_context_is_read_from_its_end(page):
    long = "ROMEO: " * 20
    at = type_prompt(start(page), long)
    assert f"The prompt has 140 tokens, and this model's context holds {CONTEXT}." in said(at)
    assert f"the {140 - CONTEXT} before them" in said(at)
    if page == "Generate":
        write(at)
        assert len(live_text(at)["kind"]) == 140 + 200
    if page == "Attention":
        assert drawn(at, "clicked_weights", "weight").shape == (CONTEXT, CONTEXT)
        assert dial(at, "Query (row)").value == 139
        pattern = cache_of("shakespeare", long)["pattern", 0][0, 0]
        assert np.allclose(lower(drawn(at, "clicked_weights", "weight")), lower(pattern), atol=1e-6)


def test_an_example_is_a_click_away():
    at = start()
    for example in reversed(EXAMPLES):
        checked(at.sidebar.button(key=f"example_shakespeare_{EXAMPLES.index(example)}").click().run())
        assert prompt(at) == example


# Models that can't be used


@every_page
def test_a_damaged_model_beside_good_ones_is_reported_and_the_rest_works(page, tiny, tmp_path, monkeypatch):
    folder = tmp_path / "checkpoints"
    shutil.copytree(tiny, folder)
    shutil.copytree(tiny / "shakespeare", folder / "broken")
    truncate(folder, "broken")
    (folder / "empty").mkdir()
    use(monkeypatch, folder)
    at = start(page)
    assert "broken: model.safetensors is damaged" in said(at)
    assert "empty: model.safetensors" in said(at) and "missing" in said(at)
    assert named(at.selectbox, "Model").options == ["Shakespeare", "Martín Fierro"]
    choose(at, "Model", "martin-fierro")
    assert prompt(at) == "Aquí me pongo"
    assert "There is no model “broken” here" in said(start(page, model="broken"))


@every_page
def test_a_damaged_default_model_gives_way_to_another(page, tiny, tmp_path, monkeypatch):
    folder = tmp_path / "checkpoints"
    shutil.copytree(tiny, folder)
    truncate(folder, "shakespeare")
    use(monkeypatch, folder)
    at = start(page)
    assert named(at.selectbox, "Model").value == "martin-fierro"
    assert prompt(at) == "Aquí me pongo"
    assert "There is no model “shakespeare” here; Martín Fierro is shown." in said(at)


@every_page
def test_weights_that_turn_out_to_be_no_numbers_are_reported_and_another_model_can_be_picked(
    page, tiny, tmp_path, monkeypatch
):
    folder = tmp_path / "checkpoints"
    shutil.copytree(tiny, folder)
    checkpoint = save_tiny(folder, "shakespeare", title="Shakespeare")
    checkpoint.model.unembed.weight.data[0, 0] = float("nan")
    save_checkpoint(folder / "shakespeare", checkpoint)
    use(monkeypatch, folder)
    at = start(page)
    assert "This model can't be opened." in said(at) and "Pick another one." in said(at)
    choose(at, "Model", "martin-fierro")
    assert prompt(at) == "Aquí me pongo" and not said(at)


@every_page
@pytest.mark.parametrize("exists", [True, False])
def test_without_any_model_there_is_a_sentence(page, exists, tmp_path, monkeypatch):
    folder = tmp_path / "checkpoints"
    if exists:
        folder.mkdir()
    use(monkeypatch, folder)
    at = start(page)
    assert "There is no model to look into: checkpoints/ holds no usable checkpoint." in said(at)
    assert "python -m transformer train" in said(at)
    assert not at.get("plotly_chart")


@every_page
@pytest.mark.parametrize(("positions", "n_layers"), [("learned", 1), ("none", 1), ("sinusoidal", 0), ("rotary", 0)])
def test_every_kind_of_model_can_be_shown(page, positions, n_layers, tmp_path, monkeypatch):
    save_tiny(tmp_path, "shakespeare", positions=positions, n_layers=n_layers)
    use(monkeypatch, tmp_path)
    at = start(page, layer=0)
    if page == "Generate":
        assert len(text_of(press(at, "Step"))) == 1
        assert (live_text(at)["weights"] is None) == (n_layers == 0)
    if page == "Attention":
        assert ("has no layers" in said(at)) == (n_layers == 0)


def test_a_model_without_examples_starts_with_an_empty_prompt(tmp_path, monkeypatch):
    save_tiny(tmp_path, "shakespeare", examples=[])
    use(monkeypatch, tmp_path)
    at = start()
    assert prompt(at) == "" and "The prompt is empty." in said(at)
    type_prompt(at, "Hi")
    assert len(text_of(press(at, "Step"))) == 1


# Generate


def written_by_the_engine(prompt, tokens, **sampling):
    checkpoint = library.model("shakespeare")
    steps = generate(checkpoint.model, checkpoint.tokenizer.encode(prompt), max_new_tokens=tokens,
                     sampling=Sampling(**sampling), names_filter=())  # fmt: skip
    return checkpoint.tokenizer.decode([step.token_id for step in steps])


def test_generate_writes_as_many_tokens_as_the_dial_says_and_what_the_engine_says():
    at = write(start(tokens=30, seed=3, temperature=1.1, top_k=20, top_p=0.9))
    wanted = written_by_the_engine(EXAMPLES[0], 30, seed=3, temperature=1.1, top_k=20, top_p=0.9)
    assert text_of(at) == wanted
    assert "30 tokens written" in live_text(at)["status"]
    write(at)
    assert text_of(at).startswith(wanted) and len(text_of(at)) == 60


def test_a_step_writes_the_first_token_of_generate():
    stepwise, at_once = start(seed=9), write(start(seed=9, tokens=4))
    for tokens in range(1, 5):
        press(stepwise, "Step")
        assert text_of(stepwise) == text_of(at_once)[:tokens]


def test_the_candidates_are_the_model_s_odds_for_the_place_inspected():
    at = write(start(tokens=6, temperature=0.5))
    first = len(EXAMPLES[0])
    at = start(**link_of(at) | {"step": first + 2})
    shown = live_text(at)
    assert shown["selected"] == first + 2 and shown["query"] == first + 1
    text = EXAMPLES[0] + text_of(at)[:2]
    checkpoint = library.model("shakespeare")
    with torch.no_grad():
        logits = checkpoint.model(torch.tensor([checkpoint.tokenizer.encode(text)[-CONTEXT:]]))[0, -1].double()
    own, drawn_with = logits.softmax(-1), (logits / 0.5).softmax(-1)
    candidates = shown["candidates"]
    assert candidates["id"] == own.argsort(descending=True)[:10].tolist()
    assert np.allclose(candidates["probability"], own[candidates["id"]], rtol=1e-3)
    assert np.allclose(candidates["sampling"], drawn_with[candidates["id"]], rtol=1e-3)
    token = checkpoint.tokenizer.encode(text_of(at))[2]
    assert shown["probability"][first + 2] == pytest.approx(float(own[token]), rel=1e-3)
    pattern = cache_of("shakespeare", text)["pattern", 0][0, 0, -1]
    assert np.allclose(shown["weights"], pattern, atol=1e-4)
    assert shown["weights_start"] == len(text) - len(pattern)


def test_the_table_lists_every_token_that_was_written():
    at = write(start(tokens=7))
    table = at.dataframe[0].value
    assert table["position"].tolist() == list(range(len(EXAMPLES[0]), len(EXAMPLES[0]) + 7))
    assert len(table["token"]) == 7 and (table["probability"] > 0).all() and (table["rank"] >= 1).all()


def test_clear_takes_the_text_and_keeps_the_prompt():
    at = write(start(tokens=5))
    assert not named(at.button, "Clear").disabled
    press(at, "Clear")
    assert text_of(at) == "" and prompt(at) == EXAMPLES[0]
    assert named(at.button, "Clear").disabled
    assert "Nothing is written yet" in live_text(at)["status"]


def test_stop_ends_a_run_and_generate_goes_on():
    at = start(tokens=500, pace="slow")
    press(at, "Generate")
    assert named(at.button, "Generate").disabled and named(at.button, "Step").disabled
    assert live_text(at)["live"]
    press(at, "Stop")
    stopped = text_of(at)
    assert 1 <= len(stopped) < 500
    assert not live_text(at)["live"] and not named(at.button, "Generate").disabled
    time.sleep(0.7)
    assert text_of(checked(at.run())) == stopped
    named(at.select_slider, "Pace").set_value("unbounded")
    checked(named(at.slider, "Number of tokens").set_value(3).run())
    assert text_of(write(at)).startswith(stopped) and len(text_of(at)) == len(stopped) + 3


@pytest.mark.parametrize("page", ["Attention", "Positions"])
def test_another_page_ends_a_run(page):
    at = press(start(tokens=500, pace="slow"), "Generate")
    go(at, page)
    text = text_of(at)
    go(at, "Generate")
    assert text_of(at) == text and named(at.button, "Stop").disabled


def test_another_prompt_while_writing_drops_the_text_and_ends_the_run():
    at = press(start(tokens=500, pace="slow"), "Generate")
    type_prompt(at, "KING: ")
    assert text_of(at) == "" and named(at.button, "Stop").disabled
    assert live_text(at)["flags"] == "p" * len("KING: ")


def test_two_visitors_do_not_see_each_other():
    one, other = start(tokens=8, seed=1), start(tokens=8, seed=2)
    write(one)
    assert text_of(checked(other.run())) == ""
    write(other)
    assert text_of(one) != text_of(other)
    assert text_of(checked(one.run())) == written_by_the_engine(EXAMPLES[0], 8, seed=1, temperature=0.8)


# Attention


def lower(matrix):
    """What a causal mask leaves visible."""
    matrix = np.asarray(matrix)
    return matrix[np.tril_indices(len(matrix))]


@pytest.mark.parametrize("model", ["shakespeare", "martin-fierro"])
@pytest.mark.parametrize(("layer", "head"), [(0, 0), (1, 1), (0, 1)])
def test_the_heatmaps_are_the_model_s_own_numbers(model, layer, head):
    typed = "To be, or not"
    at = start("Attention", model=model, prompt=typed, layer=layer, head=head)
    cache = cache_of(model, typed)

    def own(point):
        return cache[f"blocks.{layer}.attn.{point}"][0, head].numpy()

    hidden = ~np.tri(len(typed), dtype=bool)
    for key, name, point in (("clicked_weights", "weight", "pattern"), ("clicked_scores", "score", "attn_scores")):
        shown = drawn(at, key, name)
        assert np.allclose(lower(shown), lower(own(f"hook_{point}")), atol=1e-6)
        assert np.isnan(shown[hidden]).all()
    assert np.allclose(drawn(at, "plain_before", "score"), own("hook_scaled_scores"), atol=1e-6)
    visible = drawn(at, "plain_mask", "visible")
    assert (np.isfinite(visible) == ~hidden).all()
    assert (np.isfinite(drawn(at, "plain_mask", "hidden")) == hidden).all()
    (stage,) = [group for group in at.get("button_group") if group.label == "Scores"]
    checked(stage.set_value("raw").run())
    assert np.allclose(drawn(at, "plain_before", "score"), own("hook_raw_scores"), atol=1e-5)


@pytest.mark.parametrize("cell", [(0, 0), (5, 2), (12, 12), (12, 0)])
def test_by_hand_arrives_at_the_number_in_the_heatmap(cell):
    at = start("Attention", prompt="To be, or not", layer=1, head=1, query=cell[0], key=cell[1])
    words = markdown_with(at, "The query of")
    bold = [float(number.replace("−", "-")) for number in re.findall(r"\*\*(-?[\d.]+)\*\*", words)]
    raw, scaled, exponential, weight = bold
    assert weight == pytest.approx(drawn(at, "clicked_weights", "weight")[cell], abs=6e-6)
    assert scaled == pytest.approx(drawn(at, "clicked_scores", "score")[cell], abs=6e-6)
    assert raw / np.sqrt(8) == pytest.approx(scaled, abs=2e-5)
    row_sum = float(re.search(r"÷ ([\d.]+) = \*\*[\d.]+\*\*, the weight", words)[1])
    assert exponential / row_sum == pytest.approx(weight, abs=2e-5)
    products = at.dataframe[0].value
    assert products["query × key"].sum() == pytest.approx(raw, abs=1e-4)
    assert np.allclose(products["query"] * products["key"], products["query × key"])


def test_by_hand_explains_a_hidden_cell():
    at = start("Attention", prompt="To be, or not", query=3, key=9)
    words = markdown_with(at, "The query of")
    assert "−∞" in words and words.endswith("the weight is **0**")


def test_the_cell_is_the_last_query_and_its_heaviest_key_until_one_is_chosen():
    at = start("Attention", prompt="To be, or not")
    pattern = drawn(at, "clicked_weights", "weight")
    assert dial(at, "Query (row)").value == 12
    assert dial(at, "Key (column)").value == int(np.nanargmax(pattern[12]))
    choose(at, "Query (row)", 7)
    assert dial(at, "Key (column)").value == int(np.nanargmax(pattern[7]))
    choose(at, "Key (column)", 2)
    assert markdown_with(at, "The query of").startswith("The query of `o` at place 7 meets the key of `␣` at place 2:")
    assert {"query": "7", "key": "2"}.items() <= link_of(at).items()


def test_the_text_that_was_written_can_be_looked_at():
    at = go(write(start(tokens=5, prompt="To be")), "Attention")
    assert drawn(at, "clicked_weights", "weight").shape == (5, 5)
    checked(named(at.get("button_group"), "Text").set_value("all").run())
    shown = drawn(at, "clicked_weights", "weight")
    pattern = cache_of("shakespeare", "To be" + text_of(at))["pattern", 0][0, 0]
    assert np.allclose(lower(shown), lower(pattern), atol=1e-6)


def test_a_long_text_is_drawn_from_its_end_and_more_can_be_asked_for(tmp_path, monkeypatch):
    save_tiny(tmp_path, "shakespeare", context_length=80)
    use(monkeypatch, tmp_path)
    typed = "".join(chr(97 + i % 26) for i in range(70))
    at = start("Attention", prompt=typed)
    pattern = cache_of("shakespeare", typed)["pattern", 0][0, 0].numpy()
    for count in (48, 70, 8):
        checked(named(at.slider, "Tokens shown, from the end").set_value(count).run())
        shown = drawn(at, "clicked_weights", "weight")
        assert np.allclose(lower(shown), lower(pattern[-count:, -count:]), atol=1e-6)
        assert list(figure(at, "clicked_weights")["layout"]["xaxis"]["range"]) == [69.5 - count, 69.5]
        assert markdown_with(at, "The query of").startswith("The query of `r` at place 69 ")


def test_the_grid_has_all_heads_of_the_layer_or_of_the_model():
    at = start("Attention", model="martin-fierro", layer=2)

    def header():
        content = component(at, "headsup_head_grid").bytes
        return json.loads(content[4 : 4 + int.from_bytes(content[:4], "little")])

    assert (header()["layers"], header()["heads"], header()["selected"]) == ([2], 4, [2, 0])
    checked(named(at.toggle, "All layers").set_value(True).run())
    assert header()["layers"] == [0, 1, 2]


def test_the_matrices_are_offered_as_a_table():
    at = start("Attention", prompt="To be")
    table = at.dataframe[1].value
    assert len(table) == 25
    assert list(table.columns[:4]) == ["query position", "query", "key position", "key"]
    rows = table.groupby("query position")["weight"].sum()
    assert np.allclose(rows, 1, atol=1e-6)


# Positions


@pytest.mark.parametrize("dials", [{}, {"length": 20, "width": 10, "base": 100}, {"length": 2, "width": 2, "base": 2}])
def test_the_table_is_the_paper_s(dials):
    at = start("Positions", **dials)
    length, width, base = dials.get("length", 64), dials.get("width", 64), dials.get("base", 10000)
    (values,) = [numbers(t) for t in figure(at, "positions_table")["data"] if t["type"] == "heatmap"]
    assert np.allclose(values, sinusoidal_encoding(length, width, base), atol=1e-6)
    position, pair = np.arange(length)[:, None], np.arange(width // 2)[None]
    angle = position / base ** (2 * pair / width)
    assert np.allclose(values[:, ::2], np.sin(angle), atol=1e-4)
    assert np.allclose(values[:, 1::2], np.cos(angle), atol=1e-4)


@pytest.mark.parametrize(("position", "dimension"), [(0, 0), (0, 1), (5, 4), (63, 63), (17, 31)])
def test_the_formula_arrives_at_the_number_in_the_table(position, dimension):
    at = start("Positions", position=position, dimension=dimension)
    (formula,) = [element.value for element in at.latex]
    (values,) = [numbers(t) for t in figure(at, "positions_table")["data"] if t["type"] == "heatmap"]
    final = float(re.search(r"&= (-?[\d.]+)\\end", formula)[1])
    assert final == pytest.approx(values[position, dimension], abs=1e-6)
    angle = float(re.search(r"\\(?:sin|cos)\(([\d.e+-]+)\)", formula)[1])
    wave = np.cos if dimension % 2 else np.sin
    assert wave(angle) == pytest.approx(final, abs=1e-4)


@pytest.mark.parametrize(
    ("positions", "words", "key"),
    [
        ("sinusoidal", "It adds the paper's fixed table", "positions_model_table"),
        ("learned", "It adds a table that it learned", "positions_model_table"),
        ("rotary", "It adds no table.", "positions_model_rotary"),
        ("none", "It is told nothing about positions.", None),
    ],
)
def test_the_model_s_own_positions_are_shown(positions, words, key, tmp_path, monkeypatch):
    checkpoint = save_tiny(tmp_path, "shakespeare", positions=positions)
    use(monkeypatch, tmp_path)
    at = start("Positions")
    assert markdown_with(at, words)
    if key is None:
        assert not [c for c in at.get("plotly_chart") if "positions_model" in c.proto.id]
        return
    (values,) = [numbers(t) for t in figure(at, key)["data"] if t["type"] == "heatmap"]
    own = {
        "sinusoidal": sinusoidal_encoding(CONTEXT, 16),
        "learned": checkpoint.model.state_dict().get("pos_embed.weight"),
        "rotary": sinusoidal_encoding(CONTEXT, 8),  # d_head
    }[positions]
    assert np.allclose(values, own, atol=1e-6)


def test_the_dials_of_positions_can_go_to_their_ends():
    at = start("Positions", position=60, dimension=60, shift=60)
    for label, value in (("Length: positions", 2), ("Width: d_model", 2)):
        checked(named(at.slider, label).set_value(value).run())
    checked(named(at.number_input, "Base").set_value(2.0).run())
    assert {"length": "2", "width": "2", "base": "2", "position": "1", "dimension": "1", "shift": "1"}.items() <= (
        link_of(at).items()
    )
    checked(at.multiselect[0].set_value([]).run())
    assert "Pick at least one dimension" in said(at)
    for label, value in (("Length: positions", 512), ("Width: d_model", 512)):
        checked(named(at.slider, label).set_value(value).run())
    checked(named(at.number_input, "Base").set_value(1e6).run())
