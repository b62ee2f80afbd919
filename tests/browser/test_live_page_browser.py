"""Tests pages that hold a model and compute with it, offline, from one file."""

import re

import pytest

from pages.ui.number_format import percent
from tests.browser.servers import ROOT
from transformer import Sampling, Scale, generate, load_checkpoint, show, trace_pass

expect = pytest.importorskip("playwright.sync_api").expect

SHOWN = ".live[data-state=shown]"
HEAD = Scale("blocks.1.attn.hook_z", 2)


@pytest.fixture
def opened(new_window, tmp_path):
    """`opened(checkpoint, text, …)`: what `show` makes of them as a file, in a browser that is offline."""

    def open_file(checkpoint, text, **chosen):
        show(checkpoint, text, **chosen).save(tmp_path / "view.html")
        page = new_window()
        page.context.set_offline(True)
        requests = []
        page.on("request", lambda request: requests.append(request.url))
        page.goto((tmp_path / "view.html").as_uri())
        page.locator(SHOWN).wait_for()
        assert [url for url in requests if not url.startswith(("file:", "blob:", "data:"))] == []
        return page

    return open_file


@pytest.fixture(scope="module")
def sorting():
    return load_checkpoint(ROOT / "checkpoints" / "sort-letters")


def compute(page, prompt):
    page.get_by_label("Prompt").fill(prompt)
    page.get_by_role("button", name="Compute").click()


def ablate(page):
    page.get_by_label("Head to ablate").select_option("layer 1, head 2")
    page.get_by_role("button", name="Ablate", exact=True).click()
    expect(page.get_by_role("list", name="Changes of the model")).to_contain_text("layer 1, head 2 ablated")


def test_a_text_is_written_with_another_prompt_and_without_a_head(opened, sorting, browser_errors):
    page = opened(sorting, "hello=", view="generation")
    compute(page, "worlds=")
    tokens = sorting.tokenizer.encode("worlds=")
    strip = page.get_by_role("listbox", name="Text, token by token")
    expect(strip).to_contain_text("worlds=")
    page.get_by_role("button", name="Sampling").click()
    page.get_by_label("Temperature").fill("0")
    written = ""
    for interventions in ((), (HEAD,)):
        if interventions:
            ablate(page)
            expect(strip).not_to_contain_text(written)
        settings = {"max_new_tokens": 200, "sampling": Sampling(temperature=0), "interventions": interventions}
        ids = []
        for step in generate(sorting.model, tokens, **settings):
            ids.append(step.token_id)
            if step.token_id in sorting.card.stop_tokens:
                break
        written = sorting.tokenizer.decode(ids)
        page.get_by_role("button", name="Generate", exact=True).click()
        expect(strip).to_contain_text(f"worlds={written}", timeout=30_000)


def test_masks_are_filled_in_another_sentence_and_without_a_head(opened, browser_errors):
    checkpoint = load_checkpoint(ROOT / "checkpoints" / "masked-stories")
    page = opened(checkpoint, "Mary took the [mask].", view="generation")
    sentence = "Tom ran to the [mask]. Where is Tom?"
    compute(page, sentence)
    words = page.get_by_role("listbox", name="Text, token by token").get_by_role("option")
    tokens, mask_id = checkpoint.tokenizer.encode(sentence), checkpoint.card.mask_token_id
    assert mask_id is not None
    expect(words).to_have_count(len(tokens))
    mask = tokens.index(mask_id)
    candidates = page.get_by_test_id("filling-candidates").get_by_role("button")

    def best(tokens, position, interventions=()):
        logits = trace_pass(checkpoint.model, tokens, interventions=interventions).tensors["logits"][position]
        logits[mask_id] = float("-inf")
        return int(logits.argmax()), percent(float(logits.double().softmax(-1).max()))

    token, probability = best(tokens, mask)
    expect(candidates.first).to_contain_text(checkpoint.tokenizer.label(token))
    expect(candidates.first).to_contain_text(probability)
    expect(page.get_by_role("button", name="Open in Inside")).to_be_hidden()
    page.get_by_test_id("filling").get_by_role("button", name="Fill in", exact=True).click()
    expect(page.get_by_test_id("filling-status")).to_contain_text("Every mask is filled in")
    tokens[mask] = token
    words.nth(0).click()
    page.get_by_role("button", name="Mask this word").click()
    tokens[0] = mask_id
    page.get_by_label("Head to ablate").select_option("layer 4, head 0")
    for interventions in ((), (Scale("blocks.4.attn.hook_z", 0),)):
        if interventions:
            page.get_by_role("button", name="Ablate", exact=True).click()
        token, probability = best(tokens, 0, interventions)
        expect(candidates.first).to_contain_text(checkpoint.tokenizer.label(token))
        expect(candidates.first).to_contain_text(probability)
    expect(words.nth(mask)).to_have_class(re.compile("written"))  # what was filled in stayed


def test_where_a_token_looks_is_computed_anew_and_what_can_t_be_read_is_said(opened, sorting, browser_errors):
    page = opened(sorting, "hello=", view="attention", layer=1, head=2)
    expect(page.get_by_role("heading", name="Layer 1, head 2")).to_be_visible()
    compute(page, "cab=")
    weights = trace_pass(sorting.model, sorting.tokenizer.encode("cab=")).tensors["blocks.1.attn.hook_pattern"]
    most = int(weights[2, 3].argmax())
    said = f"“=” looks at “{'cab='[most]}” ({100 * float(weights[2, 3, most]):.0f}%)"
    expect(page.locator(".live")).to_contain_text(said)
    page.get_by_role("button", name="How it comes about").click()
    expect(page.get_by_text("recomputed, equal").first).to_be_visible()
    ablate(page)
    page.get_by_role("button", name="Take back: layer 1, head 2 ablated").first.click()
    expect(page.get_by_role("list", name="Changes of the model")).to_have_count(0)

    # Nothing typed is lost.
    for prompt, words in (
        ("HELLO=", "This model has never seen"),
        ("", "at least one token"),
        ("a" * 23, "at most 22"),
    ):
        compute(page, prompt)
        if words != "at most 22":
            expect(page.get_by_role("alert")).to_contain_text(words)
        expect(page.get_by_label("Prompt")).to_have_value(prompt)
    expect(page.get_by_role("alert")).to_be_hidden()  # of a text longer than the context the end is read


def test_a_whole_pass_is_computed_anew(opened, sorting, browser_errors):
    page = opened(sorting, "hello=")
    compute(page, "cab=")
    page.get_by_role("button", name="layer 1", exact=True).first.click()
    page.get_by_role("button", name="layer 1 · feed-forward").click()
    page.locator(".name.row", has_text="pre-activation").first.click()
    page.locator(".numbers.tensor[data-state=shown] canvas.marks").first.click()
    expect(page.locator(".by-hand .badge").first).to_contain_text("recomputed, equal")
    page.locator("summary", has_text="Direct logit attribution").click()
    expect(page.locator(".total[data-state=equal]")).to_be_visible()
    page.locator("summary", has_text="Checks").click()
    expect(page.get_by_text("tensors of this pass were recomputed")).to_be_visible()
    ablate(page)
    expect(page.locator(SHOWN)).to_be_visible()


def test_a_browser_computes_what_the_engine_computes_and_says_so(opened, browser_errors):
    checkpoint = load_checkpoint(ROOT / "checkpoints" / "number-words-en-es")
    page = opened(checkpoint, checkpoint.card.examples[0], view="inside")
    said = page.locator(".computed[data-deviation]")
    expect(said).to_contain_text("Its numbers differ from the engine's by at most", timeout=30_000)
    assert 0 <= float(said.get_attribute("data-deviation")) <= 1e-4


def test_a_notebook_needs_no_kernel_after_it_was_made(new_page, sorting, browser_errors):
    page = new_page()
    page.set_content(show(sorting, "hello=", view="attention")._repr_html_())
    frame = page.frame_locator("iframe")
    frame.locator(SHOWN).wait_for()
    frame.get_by_label("Prompt").fill("cab=")
    frame.get_by_role("button", name="Compute").click()
    expect(frame.locator("[data-part=texts]")).to_contain_text("c")
    expect(frame.locator(SHOWN)).to_be_visible()


def test_a_browser_without_workers_is_told(new_page, tmp_path, sorting, browser_errors):
    show(sorting, "hello=").save(tmp_path / "view.html")
    page = new_page()
    page.add_init_script("delete window.Worker")
    page.goto((tmp_path / "view.html").as_uri())
    expect(page.get_by_role("alert")).to_contain_text("it runs no workers")
