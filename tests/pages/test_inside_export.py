"""Tests the exports of the page Inside: HTML, numbers, Python code."""

import re

import numpy as np
import pytest

from pages.ui.models import library
from tests.app_driver import checked, downloads, given, ids, look_at, looked_at, open_drawers, outline, said, start, use
from tests.tiny_models import save_encoder, save_tiny, save_translator
from transformer import from_code, in_window
from transformer.api import exports
from transformer.api.pass_inputs import PassInputs
from transformer.api.tensors import tensor
from transformer.frontend import saved_model, saved_recording

pytestmark = pytest.mark.usefixtures("folder")


VIEWS = [
    ("shakespeare", {}),
    ("shakespeare", {"inside": "blocks.1.attn.qkv.weight", "cell": "2,1,3,4", "head": 1, "heads": "one"}),
    ("shakespeare", {"inside": "blocks.1", "place": 2, "changes": "scale~blocks.0.hook_mlp_out~~7~0.0!without~mask~"}),
    ("encoder", {}),
    ("encoder", {"inside": "blocks.0.attn.hook_mask", "cell": "3,9", "place": 1}),
    ("translator", {}),
    ("translator", {"inside": "decoder.blocks.0.cross_attn.hook_pattern", "cell": "0,0,1", "source_place": 1}),
]


@pytest.mark.parametrize(("model", "link"), VIEWS, ids=str)
def test_the_lines_of_python_show_the_view_again_and_compute_the_same_as_the_file(
    model, link, tmp_path, monkeypatch, capsys
):
    folder = tmp_path / "checkpoints"
    for save in (save_translator, save_encoder, lambda folder: save_tiny(folder, "shakespeare")):
        save(folder)
    use(monkeypatch, folder)
    made = downloads(monkeypatch)
    at = open_drawers(start("Inside", model=model, **link))
    assert "link" not in said(at)
    view, numbers = (
        next(block.value for block in at.code if words in block.value) for words in ("record_pass", "trace_pass")
    )
    about, looked = outline(at).metadata, looked_at(at)
    text, source = (tuple(about["ids"][name]) for name in ("text", "source"))
    changes = [from_code(code) for code in link.get("changes", "").split("!") if code]
    computed = library.opened(model), text, source
    changed = tuple(in_window(changes, about["offset"]))
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(view, "view", "exec"), names)
    name = looked["open"] if looked["open"] in names["recording"].tensors else "logits"
    shown = tensor(*computed, name, changed)
    np.testing.assert_allclose(names["recording"].tensors[name].reshape(-1), shown.reshape(-1), atol=1e-5)
    if looked["cell"]:
        assert float(capsys.readouterr().out) == pytest.approx(float(shown[tuple(looked["cell"])]), abs=1e-4)
    # The page that is saved shows the same, but for what it is called.
    page = exports.page_of(PassInputs(*computed, changed), title="inside", **looked)
    assert page == eval(view.strip().splitlines()[-1], names).html
    title = given(at)["title"]
    inputs = PassInputs(*computed, tuple(changes), about["offset"])
    assert made[f"{title}-inside.html"]() == exports.inside_view(inputs, title=f"{title}-inside", **looked).encode()
    file = exports.file_of(inputs, looked["open"])
    assert made[f"{title}-inside.safetensors"]() == file.to_bytes()
    (saved,) = re.findall(r'Path\("(.*?)"\)', numbers)
    (tmp_path / saved).write_bytes(file.to_bytes())
    capsys.readouterr()
    exec(compile(numbers, "numbers", "exec"), {})
    printed = capsys.readouterr().out.strip().splitlines()
    assert len(printed) == len(file.tensors) > 0 and all(line.endswith("True") for line in printed)


def words_of(at):
    return " ".join(block.value for block in at.markdown)


def button(at, words):
    """What a button that saves is called; None if there is none."""
    return next((each.proto.label for each in at.get("download_button") if words in each.proto.label), None)


def opened(**link):
    return open_drawers(start("Inside", prompt="To be", **link))


def test_a_page_that_is_saved_computes_or_the_page_says_how_large_it_is_and_what_it_lacks(monkeypatch):
    at = opened()
    assert "in it another prompt can be typed" in words_of(at) and button(at, "page") == "Save as a page"
    monkeypatch.setattr(saved_model, "MOST_BYTES", 1000)
    at, config = opened(), library.config("shakespeare")
    page = exports.page_of(PassInputs(library.opened("shakespeare"), tuple(ids("To be"))), title="x")
    size = int(re.search(r"\((\d+) kB\)", button(at, "page"))[1])
    assert size == pytest.approx(len(page.encode()) / 1000, rel=0.01)
    assert "every number of the pass" in words_of(at) and "computes nothing new" in words_of(at)
    all_of_it = saved_recording.page_fit(config, 5).size
    for most, words in (
        (all_of_it - 1, "it leaves out the matrices of weights"),
        (100, "too many for one page, however short the text"),
    ):
        monkeypatch.setattr(saved_recording, "MOST_BYTES", most)
        at = opened()
        assert words in words_of(at) and bool(button(at, "page")) == (most > 100)
    for most in range(100, all_of_it, 100):  # the first limit under which one token fits
        monkeypatch.setattr(saved_recording, "MOST_BYTES", most)
        if saved_recording.page_fit(config, 1):
            break
    assert "Shorten the text to save it" in words_of(opened())


@pytest.mark.parametrize("place", ["", "blocks.1", "logits", "embed.weight"])
def test_a_view_of_too_many_numbers_isn_t_saved_and_what_would_do_is_said(place, monkeypatch):
    tokens = tuple(ids("To be"))
    inputs = PassInputs(library.opened("shakespeare"), tokens)
    size = sum(array.nbytes for array in exports.file_of(inputs, place).tensors.values())
    monkeypatch.setattr(exports, "MOST_BYTES", size)
    assert button(opened(inside=place), "Save these numbers")
    monkeypatch.setattr(exports, "MOST_BYTES", size - 1)
    at = opened(inside=place)
    told = words_of(at)
    assert not button(at, "Save these numbers") and "All numbers of this view take" in told
    assert ("choose a part of the model" in told.lower()) == (place in ("", "blocks.1"))
    assert ("They are weights" in told) == (place == "embed.weight")
    found = re.search(r"text of at most (\d+) tokens", told)
    assert (int(found[1]) if found else None) == (None if place == "embed.weight" else len(tokens) - 1)
    with pytest.raises(ValueError, match="All numbers of this view take"):
        exports.file_of(inputs, place)
    checked(look_at(at, inside="blocks.0.hook_mlp_out").run())  # opened in the picture, it decides
    assert button(at, "Save these numbers") and "All numbers of this view take" not in words_of(at)
