"""Back, forward, typing and reconnecting in a real browser: the address bar holds the view, and nothing adds to it."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.tiny_models import save_pair, save_tiny

expect = pytest.importorskip("playwright.sync_api").expect
expect.set_options(timeout=30_000)

# On a deep link Streamlit first looks for its server below the page's address, in vain.
BENIGN = re.compile(r"Failed to load resource: .* 404 .*\(http://127\.0\.0\.1:\d+/[A-Z][a-z]+/_stcore/[a-z-]+\)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    save_pair(folder, context_length=48, group="Texts")
    save_tiny(folder, "sorting", title="Sorting", group="Tasks", context_length=48)
    return folder


@pytest.fixture(scope="module")
def server(serve, folder):
    with serve("app.py", env={"HEADSUP_CHECKPOINTS": str(folder)}) as server:
        yield server


@pytest.fixture
def visit(server, new_page, wait_ready, browser_errors):
    def open_page(path="", at=None, **options):
        page = new_page(**options)
        page.goto(f"{(at or server).url}/{path}")
        until_on(page, path.partition("?")[0] or "Generate", wait_ready)
        return page

    yield open_page
    browser_errors[:] = [error for error in browser_errors if not BENIGN.fullmatch(error)]


def until_on(page, name, wait_ready):
    page.get_by_role("heading", level=1, name=name).wait_for(timeout=60_000)
    wait_ready(page, timeout=60)


def turn_to(page, name, wait_ready):
    page.get_by_test_id("stSidebar").get_by_role("link", name=name).click()
    until_on(page, name, wait_ready)


def prompt_box(page):
    return page.get_by_role("textbox", name="Prompt", exact=True)


def type_prompt(page, typed, wait_ready):
    prompt_box(page).fill(typed)
    prompt_box(page).press("Control+Enter")
    wait_ready(page)


def entries(page):
    return page.evaluate("history.length")


def parameters(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query, keep_blank_values=True).items()}


def pick(page, label, option, wait_ready):
    page.get_by_role("combobox", name=re.compile(label)).click()
    page.get_by_role("option", name=option, exact=True).click()
    wait_ready(page)


def chosen(page, label):
    return page.get_by_role("combobox", name=re.compile(label))


def test_one_step_back_leaves_a_page_to_the_one_before_as_it_was(visit, wait_ready):
    page = visit()
    before = entries(page)
    for typed in ("To be", "To be, or", "KING: I am"):
        type_prompt(page, typed, wait_ready)
        assert parameters(page)["prompt"] == typed
    pick(page, "Layer", "layer 1", wait_ready)
    assert entries(page) == before
    turn_to(page, "Attention", wait_ready)
    assert entries(page) == before + 1
    pick(page, "Head", "1", wait_ready)
    attention = parameters(page)
    assert (attention["prompt"], attention["layer"], attention["head"]) == ("KING: I am", "1", "1")
    turn_to(page, "Masks", wait_ready)
    type_prompt(page, "Hello world", wait_ready)
    assert entries(page) == before + 2

    page.go_back()
    until_on(page, "Attention", wait_ready)
    assert urlsplit(page.url).path == "/Attention" and parameters(page) == attention
    expect(prompt_box(page)).to_have_value("KING: I am")
    expect(page.get_by_text("Layer 1, head 1.")).to_be_visible()
    page.go_back()
    until_on(page, "Generate", wait_ready)
    assert urlsplit(page.url).path == "/"
    assert {name: value for name, value in attention.items() if name != "head"} == parameters(page)
    expect(page.get_by_test_id("live-text-picture")).to_contain_text("layer 1, head 0")
    page.go_forward()
    until_on(page, "Attention", wait_ready)
    expect(page.get_by_text("Layer 1, head 1.")).to_be_visible()
    page.go_forward()
    until_on(page, "Masks", wait_ready)
    expect(prompt_box(page)).to_have_value("Hello world")
    assert entries(page) == before + 2


def test_what_was_written_comes_back_with_its_page(visit, wait_ready):
    page = visit("?tokens=6")
    main = page.get_by_test_id("stMain")
    tokens = page.get_by_test_id("live-text-token")
    given = tokens.count()
    main.get_by_role("button", name="Generate", exact=True).click()
    expect(tokens).to_have_count(given + 6)
    wait_ready(page)
    written = parameters(page)["text"]
    turn_to(page, "Positions", wait_ready)
    type_prompt(page, "KING:", wait_ready)
    assert "text" not in parameters(page)
    page.go_back()
    until_on(page, "Generate", wait_ready)
    expect(tokens).to_have_count(given + 6)
    assert parameters(page)["text"] == written


def test_prompts_of_any_length_follow_one_another(visit, wait_ready):
    page = visit("Attention")
    type_prompt(page, "Hello world", wait_ready)
    turn_to(page, "Generate", wait_ready)
    turn_to(page, "Attention", wait_ready)
    for typed in ("the king", "my lord of York", "Hello world", "the king", "the king#", "the king"):
        type_prompt(page, typed, wait_ready)
        expect(chosen(page, r"Query \(row\)")).to_have_value(f"{len(typed) - 1}: {typed[-1]}")
    assert not {"query", "key"} & set(parameters(page))


def test_batches_of_any_length_follow_one_another(visit, wait_ready):
    page = visit("Masks")
    box = page.get_by_role("textbox", name="Prompts, one a line")
    for lines in ("one\ntwo\nthree\nfour", "one\ntwo", "one\ntwo\nthree"):
        box.fill(lines)
        box.press("Control+Enter")
        wait_ready(page)
    type_prompt(page, "😀", wait_ready)
    type_prompt(page, "ROMEO:", wait_ready)
    box.fill("four\nfive")
    box.press("Control+Enter")
    wait_ready(page)
    found = parameters(page)
    assert found["batch"] == "four\nfive" and not {"filler", "pad_side", "scope"} & set(found)


def test_the_family_of_models_stays_marked(visit, wait_ready):
    page = visit()
    for name in ("Attention", "Masks", "Positions", "Train", "Generate"):
        turn_to(page, name, wait_ready)
        marked = page.get_by_test_id("stSidebar").get_by_role("radio", name="Texts")
        expect(marked).to_have_attribute("aria-checked", "true")
