"""Tests instruments in one HTML file, offline, and in a notebook: recorded passes, and models that compute."""

import re

import pytest
import torch

from pages.ui.number_format import percent
from tests.browser.servers import ROOT
from transformer import Sampling, Scale, generate, load_checkpoint, record, record_pass, show, trace_pass
from transformer.frontend import saved_recording

expect = pytest.importorskip("playwright.sync_api").expect

SHOWN = "[data-part=root][data-state=shown]"
WHOLE = "[data-whole=true]"
STILL = ".headsup-still"
HEAD = Scale("blocks.1.attn.hook_z", 2)


def shipped(name):
    return load_checkpoint(ROOT / "checkpoints" / name)


def recorded(name, text):
    """A shipped model's whole pass over a text, whose decoder, if it has one besides, has read its start token."""
    checkpoint = shipped(name)
    tokens, source = checkpoint.tokenizer.encode(text), []
    if checkpoint.model.config.architecture == "encoder-decoder":
        tokens, source = [checkpoint.card.start_token_id], tokens
    return record_pass(checkpoint.model, tokens, source, labels=checkpoint.tokenizer.labels)


@pytest.fixture
def opened(new_window, tmp_path, browser_errors):
    """`opened(shown, page=None)`: a page that was saved as a file, in a browser that is offline."""
    asked = []

    def open_file(page_shown, page=None):
        page_shown.save(tmp_path / "view.html")
        if page is None:
            page = new_window()
            page.context.set_offline(True)
            page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "view.html").as_uri())
        return page

    yield open_file
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []


def until_equal(page):
    expect(page.locator(".by-hand .badge").first).to_contain_text("recomputed, equal")


def go_through_a_pass(page):
    """From the model to a cell; the folds below."""
    page.get_by_role("button", name="layer 1", exact=True).first.click()
    page.get_by_role("button", name="layer 1 · feed-forward").click()
    page.locator(".name.row", has_text="pre-activation").first.click()
    page.locator(".numbers.tensor[data-state=shown] canvas.marks").first.click()
    until_equal(page)
    page.locator("summary", has_text="Direct logit attribution").click()
    expect(page.locator(".total[data-state=equal]")).to_be_visible()
    page.locator("summary", has_text="Checks").click()
    expect(page.get_by_text("tensors of this pass were recomputed")).to_be_visible()


def compute(page, prompt):
    page.get_by_label("Prompt").fill(prompt)
    page.get_by_label("Prompt").press("Enter")


def ablate(page, layer=1, head=2):
    page.get_by_role("button", name="Menu").click()
    page.locator("summary", has_text="Changes").click()
    menu = page.get_by_role("group", name="Menu")
    menu.get_by_label("Where").select_option(f"layer {layer}")
    if head:
        menu.get_by_label("Head", exact=True).select_option(str(head))
    menu.get_by_role("button", name="Change this").click()
    expect(page.get_by_role("list", name="Changes of the model")).to_contain_text(f"layer {layer}, head {head} ablated")
    page.locator("summary", has_text="Changes").click()
    page.keyboard.press("Escape")


# Recorded passes


def test_attention_is_explored_as_on_the_page_with_what_was_recorded(opened):
    checkpoint = shipped("shakespeare")
    tokens = checkpoint.tokenizer.encode("To be, or not")
    names = [name for name, _ in checkpoint.model.named_parameters() if name.endswith("attn.out.weight")]
    about = {"labels": {"text": checkpoint.tokenizer.labels(tokens)}, "parameters": names}
    all_of_it = record(checkpoint.model, torch.tensor([tokens]), checkpoint.model.hook_names(), **about)
    page, view = None, {"layer": 1, "head": 3}
    for found, kind, steps in ((all_of_it, None, 7), (recorded("shakespeare", "To be, or not"), "self", 1)):
        page = opened(show(found, kind, **view), page)  # of a whole pass the weights are the model's own
        page.get_by_role("button", name="How it comes about").click()
        for heading in ("Layer 1, head 3", "Layer 2, head 5"):
            page.get_by_role("button", name=heading).click()
            expect(page.get_by_role("heading", name=heading)).to_be_visible()
            expect(page.get_by_text("recomputed, equal")).to_have_count(steps)
        expect(page.locator("[data-fetched=true]")).to_be_visible()  # nothing is asked for again and again
        assert page.get_by_text("comparing").count() == page.get_by_text("not equal").count() == 0
    page = opened(show(record(checkpoint.model, torch.tensor([tokens]), None)), page)
    expect(page.locator(WHOLE)).to_be_visible()
    page.wait_for_timeout(300)
    assert page.get_by_text("comparing").count() == 0  # what was not recorded is left out


def test_a_whole_pass_is_explored_with_its_circuits_and_what_it_had_no_room_for_is_said(opened, monkeypatch):
    page = opened(show(recorded("sort-letters", "hello=")))
    go_through_a_pass(page)
    page.locator(".by-hand .links button", has_text="W_up").click()
    expect(page.locator(".by-hand .where").first).to_contain_text("Learned in training")
    page.locator("summary", has_text="Circuits").click()
    circuits = page.get_by_role("region", name="Circuits")
    circuits.get_by_label("Circuit", exact=True).select_option("qk")
    before = circuits.locator(".pairs button").first.inner_text()
    circuits.get_by_role("slider").fill("3")
    expect(circuits).to_contain_text("the key stands 3 tokens before the query")
    expect(circuits.locator(".pairs button").first).not_to_have_text(before)
    circuits.locator(".pairs button").first.click()
    expect(circuits.locator(".term")).to_contain_text("The sum of the 16 products is")

    monkeypatch.setattr(saved_recording, "MOST_BYTES", 200_000)
    opened(show(recorded("induction", "abcab"), open="blocks.1.attn.hook_z", cell=(3, 1, 2)), page)
    until_equal(page)
    page.get_by_role("combobox", name="Find a tensor").fill("blocks.1.attn.qkv.weight")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Tensor")).to_contain_text("left out of this page, which would be too large")
    page.evaluate("document.querySelector('.names [data-open=\"blocks.1.attn.hook_v\"]').click()")
    page.locator(".numbers.tensor[data-state=shown] canvas.marks").first.click()
    expect(page.get_by_role("region", name="By hand")).to_contain_text("were left out of this page")


def test_a_notebook_s_frame_shows_any_view_and_a_still_picture_where_there_are_no_frames_or_scripts(
    new_page, chromium, browser_errors
):
    page = new_page()
    frame = page.frame_locator("iframe")
    translation = recorded("number-words-en-es", "two hundred and five")
    page.set_content(show(translation, open="decoder.blocks.1.cross_attn.hook_pattern", cell=(2, 0, 3))._repr_html_())
    until_equal(frame)
    expect(frame.get_by_role("region", name="By hand")).to_contain_text("Attention weights, head 2, ")
    page.set_content(show(shipped("sort-letters"), "hello=", view="attention")._repr_html_())
    frame.locator(SHOWN).wait_for()
    compute(frame, "cab=")  # it needs no kernel after it was made
    expect(frame.locator("[data-part=texts]")).to_contain_text("c")
    expect(frame.locator(SHOWN)).to_be_visible()

    html = show(translation, "cross")._repr_html_()
    page.set_content(f"<div>{html}</div>")
    expect(frame.locator(WHOLE)).to_be_visible()
    frame.get_by_role("button", name="How it comes about").click()
    expect(frame.locator("[data-panel=masked]")).to_contain_text("No mask here")
    with page.expect_download():
        frame.get_by_role("button", name="CSV", exact=True).click()
    expect(page.locator(STILL)).to_be_hidden()
    page.set_content(f"<div>{html.partition('</iframe>')[2]}</div>")  # taken out, as some viewers do
    assert page.locator(f"{STILL} img").evaluate("(image) => image.naturalWidth") > 0
    with chromium.new_context(java_script_enabled=False) as context:
        still = context.new_page()
        still.set_content(show(recorded("induction", "abcab")).html)
        expect(still.locator(f"{STILL} img")).to_be_visible()
        expect(still.locator(STILL)).to_contain_text("scripts are needed to explore it")


# Models that compute


def test_a_text_is_written_and_masks_are_filled_with_another_prompt_and_without_a_head(opened):
    sorting = shipped("sort-letters")
    page = opened(show(sorting, "hello=", view="generation"))
    compute(page, "worlds=")
    strip = page.get_by_role("listbox", name="Text, token by token")
    expect(strip).to_contain_text("worlds=")
    page.get_by_role("button", name="Sampling").click()
    page.get_by_label("Temperature").fill("0")
    tokens, ends = sorting.tokenizer.encode("worlds="), sorting.card.stop_tokens
    written = ""
    for interventions in ((), (HEAD,)):
        if interventions:
            ablate(page)
            expect(strip).to_contain_text(written)  # which the model without that head would not have written
            page.get_by_role("button", name="Clear", exact=True).click()
            expect(strip).not_to_contain_text(written)
        greedy = {"sampling": Sampling(temperature=0), "stop_tokens": ends, "interventions": interventions}
        steps = generate(sorting.model, tokens, max_new_tokens=200, **greedy)
        written = sorting.tokenizer.decode([step.token_id for step in steps])
        page.get_by_role("button", name="Generate", exact=True).click()
        expect(strip).to_contain_text(f"worlds={written}")

    checkpoint = shipped("masked-stories")
    opened(show(checkpoint, "Mary took the [mask].", view="generation"), page)
    sentence = "Tom ran to the [mask]. Where is Tom?"
    compute(page, sentence)
    words, candidates = strip.get_by_role("option"), page.get_by_test_id("filling-candidates").get_by_role("button")
    tokens, mask_id = checkpoint.tokenizer.encode(sentence), checkpoint.card.mask_token_id

    def expect_best(at, interventions=()):
        """The likeliest token of a mask is the engine's, and has its probability."""
        logits = trace_pass(checkpoint.model, tokens, interventions=interventions).tensors["logits"][at]
        share, token = logits.double().softmax(-1).max(-1)
        expect(candidates.first).to_contain_text(checkpoint.tokenizer.label(int(token)))
        expect(candidates.first).to_contain_text(percent(float(share)))
        return int(token)

    mask = tokens.index(mask_id)
    tokens[mask] = expect_best(mask)
    expect(page.get_by_role("button", name="Open in Inside")).to_be_hidden()
    page.get_by_test_id("filling").get_by_role("button", name="Fill in", exact=True).click()
    expect(page.get_by_test_id("filling-status")).to_contain_text("Every mask is filled in")
    words.nth(0).click()
    page.get_by_role("button", name="Mask this word").click()
    tokens[0] = mask_id
    expect_best(0)
    ablate(page, 4, 0)
    expect_best(0, (Scale("blocks.4.attn.hook_z", 0),))
    expect(words.nth(mask)).to_have_class(re.compile("written"))  # what was filled in stayed


def test_attention_and_a_whole_pass_are_computed_anew_and_what_can_t_be_read_is_said(opened):
    sorting = shipped("sort-letters")
    page = opened(show(sorting, "hello=", view="attention", layer=1, head=2))
    expect(page.get_by_role("heading", name="Layer 1, head 2")).to_be_visible()
    compute(page, "cab=")
    weights = trace_pass(sorting.model, sorting.tokenizer.encode("cab=")).tensors["blocks.1.attn.hook_pattern"]
    most = int(weights[2, 3].argmax())
    said = f"“=” looks at “{'cab='[most]}” ({100 * float(weights[2, 3, most]):.0f}%)"
    expect(page.locator(".shell")).to_contain_text(said)
    page.get_by_role("button", name="How it comes about").click()
    expect(page.get_by_text("recomputed, equal").first).to_be_visible()
    ablate(page)
    page.get_by_role("button", name="Menu, 1 change").click()
    page.locator("summary", has_text="Changes").click()
    page.get_by_role("button", name="Remove: layer 1, head 2 ablated").click()
    expect(page.get_by_role("button", name="Menu", exact=True)).to_be_visible()
    problem = page.get_by_role("alert").filter(visible=True)
    for prompt, words in (("HELLO=", "This model has never seen"), ("", "The prompt is empty"), ("a" * 23, "")):
        compute(page, prompt)
        expect(page.locator(".shell")).to_contain_text(words)
        expect(page.get_by_label("Prompt")).to_have_value(prompt)  # nothing typed is lost
    expect(problem).to_be_hidden()  # of a text longer than the context the end is read

    opened(show(sorting, "hello="), page)
    page.locator(SHOWN).wait_for()
    compute(page, "cab=")
    go_through_a_pass(page)
    ablate(page)
    expect(page.locator(SHOWN)).to_be_visible()

    translator = shipped("number-words-en-es")
    opened(show(translator, translator.card.examples[0], view="attention"), page)
    computed = page.locator(".computed")
    close = re.compile(r"differ from the engine's by at most (0|[\d.]+ × 10⁻[⁵⁶⁷⁸⁹¹]) of the largest")
    expect(computed).to_contain_text(close)
    page.locator("[data-panel=weights] canvas.marks").press("Home")
    expect(page.locator("[data-part=readout]")).to_contain_text(re.compile(r"key “\w+” at position 0"))
    page.add_init_script("delete window.Worker")
    opened(show(sorting, "hello="), page)
    expect(problem).to_contain_text("it runs no workers")
