"""Tests instruments saved as one HTML file, offline."""

import pytest
import torch

from tests.browser.servers import ROOT
from transformer import load_checkpoint, record, record_pass, show
from transformer.frontend import saved_page

expect = pytest.importorskip("playwright.sync_api").expect


def shown(name, text, **chosen):
    """What a notebook would show of a shipped model."""
    checkpoint = load_checkpoint(ROOT / "checkpoints" / name)
    model, tokens = checkpoint.model, checkpoint.tokenizer.encode(text)
    inputs, labels = torch.tensor([tokens]), {"text": checkpoint.tokenizer.labels(tokens)}
    if model.config.architecture == "encoder-decoder":
        inputs = (inputs, torch.tensor([[checkpoint.card.start_token_id]]))
        labels = {"source": labels["text"], "text": checkpoint.tokenizer.labels([checkpoint.card.start_token_id])}
    weights = [parameter for parameter, _ in model.named_parameters() if parameter.endswith("attn.out.weight")]
    return show(record(model, inputs, model.hook_names(), labels=labels, parameters=weights), **chosen)


@pytest.fixture
def opened(new_page, tmp_path):
    """`opened(shown)`: a page that was saved as a file, in a browser that is offline."""

    def open_file(page_shown, **options):
        page_shown.save(tmp_path / "view.html")
        page = new_page(**options)
        page.context.set_offline(True)
        requests = []
        page.on("request", lambda request: requests.append(request.url))
        page.goto((tmp_path / "view.html").as_uri())
        page.context.set_offline(False)
        assert [url for url in requests if not url.startswith(("file:", "blob:", "data:"))] == []
        return page

    return open_file


def test_a_file_can_be_explored_like_the_page(opened, browser_errors):
    page = opened(shown("shakespeare", "To be, or not", kind=None, layer=1, head=3))
    expect(page.get_by_role("heading", name="Layer 1, head 3")).to_be_visible()
    expect(page.locator("[data-whole=true]")).to_be_visible()
    page.get_by_role("button", name="How it comes about").click()
    expect(page.get_by_text("recomputed, equal")).to_have_count(7)  # each step that the model computed, as in the app
    page.get_by_role("button", name="Layer 2, head 5").click()
    expect(page.get_by_role("heading", name="Layer 2, head 5")).to_be_visible()
    expect(page.locator("[data-whole=true]")).to_be_visible()
    marks = page.locator("[data-panel=weights] canvas.marks")
    marks.click()
    marks.press("ArrowUp")
    expect(page.locator("[data-part=readout]")).to_contain_text("weight")
    expect(page.get_by_text("comparing")).to_have_count(0)
    assert page.get_by_text("not equal").count() == 0
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    assert download.value.suggested_filename == "attention-layer2-head5.csv"


def recorded_inside(name, text, **more):
    """A shipped model's whole pass over a text, whose decoder, if it has one besides, has read its start token."""
    checkpoint = load_checkpoint(ROOT / "checkpoints" / name)
    tokens, source = checkpoint.tokenizer.encode(text), []
    if checkpoint.model.config.architecture == "encoder-decoder":
        tokens, source = [checkpoint.card.start_token_id], tokens
    return record_pass(checkpoint.model, tokens, source, labels=checkpoint.tokenizer.labels, **more)


def test_a_whole_pass_can_be_explored_like_the_page(opened, browser_errors):
    """From the model to a cell and to the weights it is made of; the folds below, and the circuits."""
    page = opened(show(recorded_inside("sort-letters", "hello=")))
    page.get_by_role("button", name="layer 1", exact=True).first.click()
    page.get_by_role("button", name="layer 1 · feed-forward").click()
    page.locator(".name.row", has_text="pre-activation").first.click()
    marks = page.locator(".numbers.tensor[data-state=shown] canvas.marks").first
    marks.click()
    badge = page.locator(".by-hand .badge").first
    expect(badge).to_contain_text("recomputed, equal")
    page.locator(".by-hand .links button", has_text="W_up").click()
    expect(page.locator(".by-hand .where").first).to_contain_text("Learned in training")
    page.locator("summary", has_text="Direct logit attribution").click()
    expect(page.locator(".total[data-state=equal]")).to_be_visible()
    page.locator("summary", has_text="Checks").click()
    expect(page.get_by_text("tensors of this pass were recomputed")).to_be_visible()
    page.locator("summary", has_text="Circuits").click()
    circuits = page.get_by_role("region", name="Circuits")
    circuits.get_by_label("Circuit", exact=True).select_option("qk")
    before = circuits.locator(".pairs button").first.inner_text()
    circuits.get_by_role("slider").fill("3")
    expect(circuits).to_contain_text("the key stands 3 tokens before the query")
    assert circuits.locator(".pairs button").first.inner_text() != before
    circuits.locator(".pairs button").first.click()
    expect(circuits.locator(".term")).to_contain_text("The sum of the 16 products is")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as PNG").click()
    assert download.value.suggested_filename == "inside-blocks.1.mlp.up.weight.png"
    assert download.value.path().read_bytes()[:4] == b"\x89PNG"


def test_a_whole_pass_opens_where_it_is_told_to_in_a_notebook_s_frame(new_page, browser_errors):
    page = new_page()
    name = "decoder.blocks.1.cross_attn.hook_pattern"
    found = recorded_inside("number-words-en-es", "two hundred and five")
    page.set_content(show(found, open=name, cell=(2, 0, 3))._repr_html_())
    hand = page.frame_locator("iframe").get_by_role("region", name="By hand")
    expect(hand).to_contain_text("recomputed, equal")
    expect(hand).to_contain_text("Attention weights, head 2, ")


def test_what_a_page_had_no_room_for_is_said(opened, monkeypatch, browser_errors):
    monkeypatch.setattr(saved_page, "MOST_BYTES", 200_000)
    page = opened(show(recorded_inside("induction", "abcab"), open="blocks.1.attn.hook_z", cell=(3, 1, 2)))
    expect(page.get_by_role("region", name="By hand")).to_contain_text("recomputed, equal")
    page.get_by_role("combobox", name="Find a tensor").fill("blocks.1.attn.qkv.weight")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Tensor")).to_contain_text("left out of this page, which would be too large")
    page.evaluate("document.querySelector('.names [data-open=\"blocks.1.attn.hook_v\"]').click()")
    page.locator(".numbers.tensor[data-state=shown] canvas.marks").first.click()
    expect(page.get_by_role("region", name="By hand")).to_contain_text("were left out of this page")


def test_cross_attention_in_a_notebook_s_frame(new_page, browser_errors):
    page = new_page()
    page.set_content(shown("number-words-en-es", "two hundred and five", kind="cross")._repr_html_())
    frame = page.frame_locator("iframe")
    expect(frame.locator("[data-whole=true]")).to_be_visible()
    frame.get_by_role("button", name="How it comes about").click()
    expect(frame.locator("[data-panel=masked]")).to_contain_text("No mask here")


def test_attention_of_a_whole_pass_can_be_explored_head_by_head(opened, browser_errors):
    page = opened(show(recorded_inside("shakespeare", "To be, or not"), "self", layer=1, head=3))
    expect(page.get_by_role("heading", name="Layer 1, head 3")).to_be_visible()
    page.get_by_role("button", name="How it comes about").click()
    expect(page.get_by_text("recomputed, equal")).to_have_count(1)  # the weights are the model's own
    expect(page.locator("[data-fetched=true]")).to_be_visible()  # nothing is asked for again and again
    page.get_by_role("button", name="Layer 2, head 5").click()
    expect(page.get_by_role("heading", name="Layer 2, head 5")).to_be_visible()
    expect(page.get_by_text("recomputed, equal")).to_have_count(1)
    assert page.get_by_text("comparing").count() == page.get_by_text("not equal").count() == 0


STILL = ".headsup-still"


def test_without_scripts_a_still_picture_is_seen_else_the_instrument(opened, chromium, tmp_path, browser_errors):
    page = opened(show(recorded_inside("induction", "abcab")))
    with chromium.new_context(java_script_enabled=False) as context:
        still = context.new_page()
        still.goto((tmp_path / "view.html").as_uri())
        expect(still.locator(f"{STILL} img")).to_be_visible()
        expect(still.locator(STILL)).to_contain_text("scripts are needed to explore it")
    expect(page.get_by_role("button", name="layer 1", exact=True).first).to_be_visible()
    expect(page.locator(STILL)).to_have_count(0)


def test_a_notebook_shows_the_picture_where_the_frame_is_taken_out(new_page, browser_errors):
    found = show(recorded_inside("induction", "abcab"), "self")._repr_html_()
    page = new_page()
    page.set_content(f"<div>{found}</div>")
    expect(page.frame_locator("iframe").locator("[data-whole=true]")).to_be_visible()
    expect(page.locator(STILL)).to_be_hidden()
    page.set_content(f"<div>{found.partition('</iframe>')[2]}</div>")
    expect(page.locator(STILL)).to_be_visible()
    assert page.locator(f"{STILL} img").evaluate("(image) => image.naturalWidth") > 0


def test_what_was_not_recorded_is_left_out(opened, browser_errors):
    checkpoint = load_checkpoint(ROOT / "checkpoints" / "induction")
    tokens = torch.tensor([checkpoint.tokenizer.encode(checkpoint.card.examples[0])])
    page = opened(show(record(checkpoint.model, tokens, None)))
    expect(page.locator("[data-whole=true]")).to_be_visible()
    page.wait_for_timeout(300)
    assert page.get_by_text("comparing").count() == 0
