"""An instrument as one HTML file: it opens without a network, and can be explored as in the app."""

import pytest
import torch

from tests.browser.servers import ROOT
from transformer import load_checkpoint, record, show

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
    expect(page.get_by_text("recomputed, equal")).to_have_count(7)  # each step that the model computed, as in the app
    page.get_by_test_id("head-grid-head").nth(2 * 6 + 5).click()
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


def test_cross_attention_in_a_notebook_s_frame(new_page, browser_errors):
    page = new_page()
    page.set_content(shown("number-words-en-es", "two hundred and five", kind="cross")._repr_html_())
    frame = page.frame_locator("iframe")
    expect(frame.locator("[data-whole=true]")).to_be_visible()
    expect(frame.locator("[data-panel=masked]")).to_contain_text("No mask here")


def test_what_was_not_recorded_is_left_out(opened, browser_errors):
    checkpoint = load_checkpoint(ROOT / "checkpoints" / "induction")
    tokens = torch.tensor([checkpoint.tokenizer.encode(checkpoint.card.examples[0])])
    page = opened(show(record(checkpoint.model, tokens, None)))
    expect(page.locator("[data-whole=true]")).to_be_visible()
    page.wait_for_timeout(300)
    assert page.get_by_text("comparing").count() == 0
