"""Tests the exports of the page Inside: HTML, numbers, Python code."""

import re

import numpy as np
import pytest

from pages.ui.models import library
from tests.app_driver import checked, look_at, looked_at, open_drawers, outline, said, start, use
from tests.tiny_models import save_encoder, save_tiny, save_translator
from transformer import Scale, Without, from_code, in_window, load_checkpoint, to_code, trace_pass
from transformer.api import exports
from transformer.api.tensors import tensor
from transformer.frontend import live_page, saved_page

pytestmark = pytest.mark.usefixtures("folder")

# The view to take along


VIEWS = [
    ("shakespeare", {}),
    ("shakespeare", {"inside": "blocks.1.attn.qkv.weight", "cell": "2,1,3,4", "head": 1, "heads": "one"}),
    ("shakespeare", {"inside": "blocks.1", "place": 2, "changes": "scale~blocks.0.attn.hook_z~0~~0"}),
    ("encoder", {}),
    ("encoder", {"inside": "blocks.0.attn.hook_mask", "cell": "3,9", "place": 1}),
    ("translator", {"inside": "decoder.blocks.0.cross_attn.hook_pattern", "cell": "0,0,1", "source_place": 1}),
]


@pytest.mark.parametrize(("model", "link"), VIEWS)
def test_the_lines_of_python_show_the_view_again(model, link, tmp_path, monkeypatch, capsys):
    save_tiny(tmp_path / "checkpoints", "shakespeare")
    save_translator(tmp_path / "checkpoints")
    save_encoder(tmp_path / "checkpoints")
    use(monkeypatch, tmp_path / "checkpoints")
    at = start("Inside", model=model, **link)
    assert not said(at)
    (lines,) = [block.value for block in open_drawers(at).code if "record_pass" in block.value]
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(lines, "lines", "exec"), names)
    ids, looked, there = outline(at).metadata["ids"], looked_at(at), names["recording"].tensors
    computed = library.opened(model), tuple(ids["text"]), tuple(ids["source"])
    changed = tuple(from_code(code) for code in [link.get("changes")] if code)
    name = looked["open"] if looked["open"] in there else "logits"
    shown = tensor(*computed, name, changed)
    np.testing.assert_allclose(there[name].reshape(-1), shown.reshape(-1), atol=1e-5)
    if looked["cell"]:
        assert float(capsys.readouterr().out) == pytest.approx(float(shown[tuple(looked["cell"])]), abs=1e-4)
    # The page that is saved shows the same, but for what it is called.
    page = exports.page_of(*computed, changed, options={"title": "inside", **looked})
    assert page == eval(lines.strip().splitlines()[-1], names).html


def test_the_page_of_a_small_model_computes():
    at = open_drawers(start("Inside", prompt="To be"))
    assert "in it another prompt can be typed" in words_of(at)
    assert [each for each in at.get("download_button") if each.proto.label == "Save as a page"]


def test_the_button_says_how_large_the_page_is_and_what_it_lacks(monkeypatch):
    monkeypatch.setattr(live_page, "MOST_BYTES", 1000)
    at = open_drawers(start("Inside", prompt="To be"))
    ids = tuple(outline(at).metadata["ids"]["text"])
    page = exports.page_of(library.opened("shakespeare"), ids, (), options={"title": "x"})
    (button,) = [each for each in at.get("download_button") if "page" in each.proto.label]
    size = int(re.search(r"\((\d+) kB\)", button.proto.label)[1])
    assert size == pytest.approx(len(page.encode()) / 1000, rel=0.01)
    assert "every number of the pass" in words_of(at)
    assert "computes nothing new" in words_of(at)
    all_of_it = saved_page.page_fit(library.config("shakespeare"), len(ids)).size
    monkeypatch.setattr(saved_page, "MOST_BYTES", all_of_it - 1)
    assert "it leaves out the matrices of weights" in words_of(open_drawers(start("Inside", prompt="To be")))
    monkeypatch.setattr(saved_page, "MOST_BYTES", 100)
    at = open_drawers(start("Inside", prompt="To be"))
    assert "too many for one page, however short the text" in words_of(at)
    assert not [each for each in at.get("download_button") if "page" in each.proto.label]
    for most in range(100, all_of_it, 100):  # the first limit under which one token fits
        monkeypatch.setattr(saved_page, "MOST_BYTES", most)
        if saved_page.page_fit(library.config("shakespeare"), 1):
            break
    assert "Shorten the text to save it" in words_of(open_drawers(start("Inside", prompt="To be")))


def words_of(at):
    return " ".join(block.value for block in at.markdown)


# The numbers to take along


def test_a_view_of_too_many_numbers_isn_t_saved_and_what_would_do_is_said(monkeypatch):
    views = {"": "model", "blocks.1": "block", "logits": "tensor", "embed.weight": "weights"}
    model, ids = library.opened("shakespeare"), tuple(library.tokenizer("shakespeare").encode("To be, or not"))
    sizes = {
        place: sum(array.nbytes for array in exports.file_of(model, ids, (), place).tensors.values()) for place in views
    }
    for place, what in views.items():
        monkeypatch.setattr(exports, "MOST_BYTES", sizes[place])
        at = open_drawers(start("Inside", prompt="To be, or not", inside=place))
        assert [each for each in at.get("download_button") if each.proto.label == "Save these numbers"], place
        monkeypatch.setattr(exports, "MOST_BYTES", sizes[place] - 1)
        at = open_drawers(start("Inside", prompt="To be, or not", inside=place))
        assert not [each for each in at.get("download_button") if each.proto.label == "Save these numbers"], place
        told = words_of(at)
        assert "All numbers of this view take" in told
        assert ("choose a part of the model" in told.lower()) == (what in ("model", "block"))
        assert ("They are weights" in told) == (what == "weights")
        if found := re.search(r"text of at most (\d+) tokens", told):
            longest = int(found[1])
            fits = exports.file_of(model, ids[:longest], (), place)
            assert longest == len(ids) - 1 and sum(each.nbytes for each in fits.tensors.values()) < sizes[place]
        assert bool(found) == (what != "weights")
        with pytest.raises(ValueError, match="All numbers of this view take"):
            exports.file_of(model, ids, (), place)


def test_what_is_opened_in_the_picture_decides_whether_its_numbers_are_offered(monkeypatch):
    monkeypatch.setattr(exports, "MOST_BYTES", 5_000)
    at = open_drawers(start("Inside", prompt="To be"))
    assert "All numbers of this view take" in words_of(at)
    checked(look_at(at, inside="blocks.0.hook_mlp_out").run())
    assert "All numbers of this view take" not in words_of(at)
    assert [each for each in at.get("download_button") if each.proto.label == "Save these numbers"]


@pytest.mark.parametrize(
    ("model", "place", "changes"),
    [
        ("shakespeare", "", ()),
        ("shakespeare", "blocks.1", (Scale("blocks.0.hook_mlp_out", None, 7), Without("mask"))),
        ("translator", "", ()),
    ],
)
def test_the_lines_of_python_read_the_file_and_compute_the_same(model, place, changes, tmp_path, monkeypatch, capsys):
    save_tiny(tmp_path / "checkpoints", "shakespeare")
    save_translator(tmp_path / "checkpoints")
    use(monkeypatch, tmp_path / "checkpoints")
    at = start("Inside", model=model, inside=place, changes="!".join(map(to_code, changes)))
    (lines,) = [block.value for block in open_drawers(at).code if "trace_pass" in block.value]
    opened, ids = library.opened(model), outline(at).metadata["ids"]
    file = exports.file_of(
        opened, tuple(ids["text"]), tuple(ids["source"]), place, in_window(changes, outline(at).metadata["offset"])
    )
    (name,) = re.findall(r'Path\("(.*?)"\)', lines)
    (tmp_path / name).write_bytes(file.to_bytes())
    monkeypatch.chdir(tmp_path)
    exec(compile(lines, "lines", "exec"), {})
    printed = capsys.readouterr().out.strip().splitlines()
    assert len(printed) == len(file.tensors) and all(line.endswith("True") for line in printed)
    checkpoint = load_checkpoint(tmp_path / "checkpoints" / model)
    assert set(trace_pass(checkpoint.model, ids["text"], ids["source"]).tensors) >= set(file.tensors)
