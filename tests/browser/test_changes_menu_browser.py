"""Tests the menu of changes in a browser, on a page that has nothing else: by mouse and by keyboard."""

import json

import pytest
from playwright.sync_api import expect

from tests.browser.test_accessibility import found as found_by_axe
from tests.helpers import tiny_config
from transformer.frontend import FOLDER, bundle
from transformer.model.equations import equations_json

HEAD, OTHER = (f"scale~blocks.0.attn.hook_z~{head}~~0.5" for head in (0, 1))
MASK = "without~mask~"
HTML = """<!doctype html><html lang="en"><title>Changes</title><style>%s</style><main id="menu"></main>
<script type="module">%s
const model = %s;
async function read(text) {
  if (text.includes("?")) throw new Error("This model has never seen “?”.");
  const ids = Array.from(text, () => 1);
  const translates = model.config.architecture === "encoder-decoder";
  return translates ? { tokens: [1, 2], source: ids } : { tokens: ids, source: [] };
}
const menu = new ChangesMenu(document.getElementById("menu"), { read, change: ({ now }) => (globalThis.told = now) });
globalThis.show = (now, module = null) =>
  menu.show({ changes: { now, before: [] }, model, looked: { module, head: 1 }, length: 3 });
globalThis.show("");
</script></html>"""


@pytest.fixture
def menu(new_page):
    """`menu(now="", module=None, **config) -> Page`: the menu of a tiny model with these changes."""

    def open_menu(now="", module=None, **config):
        page, shape = new_page(width=390), tiny_config(**config)
        style = "".join(
            (FOLDER / path).read_text(encoding="utf-8") for path in ("site/site.css", "page/changes_menu.css")
        )
        model = {"config": shape.to_dict(), "equations": equations_json(shape)}
        page.set_content(HTML % (style, bundle(FOLDER / "page" / "changes_menu.js"), json.dumps(model)))
        page.evaluate("([now, module]) => show(now, module)", [now, module])
        return page

    return open_menu


def told(page):
    return page.evaluate("globalThis.told")


def listed(page):
    return page.get_by_role("list", name="Changes of the model").locator("li > label").all_inner_texts()


def field(page, name, within=".changes-menu > .change-form"):
    return page.locator(within).get_by_label(name, exact=True)


def edit(page, name):
    """A control of the change whose menu is open."""
    return field(page, name, "details[open]")


def test_changes_are_turned_off_edited_removed_and_undone(menu):
    page = menu(f"nonsense!{HEAD}!-{MASK}")
    assert listed(page) == ["layer 0, head 0 × 0.5", "without the causal mask"]
    box = page.get_by_role("checkbox", name="without the causal mask")
    expect(box).not_to_be_checked()
    box.check()
    assert told(page) == f"{HEAD}!{MASK}"
    page.get_by_label("Edit: layer 0, head 0 × 0.5").press("Enter")
    act = page.locator("details[open]").get_by_role
    for make, words in (
        (lambda: edit(page, "Factor").fill("-2"), "layer 0, head 0 × -2"),
        (lambda: edit(page, "Head").select_option("1"), "layer 0, head 1 × -2"),
        (lambda: edit(page, "Where").select_option("blocks.1.attn.hook_z"), "layer 1, head 1 × -2"),
        (lambda: edit(page, "At one position only").check(), "layer 1, head 1 at position 0 × -2"),
        (lambda: edit(page, "Position").fill("4"), "layer 1, head 1 at position 4 × -2"),
        (lambda: act("button", name="Its opposite").press("Enter"), "layer 1, head 1 at position 4 × 2"),
        (lambda: act("button", name="Ablate it").click(), "layer 1, head 1 at position 4 ablated"),
    ):
        make()
        act("button").first.focus()  # what is typed counts once the field is left
        assert listed(page)[0] == words
    assert told(page) == f"scale~blocks.1.attn.hook_z~1~4~0.0!{MASK}"
    assert found_by_axe(page) == []
    act("button", name="Its mean over the text").click()
    assert told(page) == f"mean~blocks.1.attn.hook_z~1~4!{MASK}"
    page.get_by_role("button", name="Remove: without the causal mask").press("Enter")
    assert listed(page) == ["layer 1, head 1 at position 4 replaced by its mean"]
    undo = page.get_by_role("button", name="Undo")
    expect(undo).to_be_focused()
    undo.press("Enter")
    page.get_by_role("button", name="Take all back").click()
    assert told(page) == "" and listed(page) == []
    for _ in range(10):
        undo.click()
    expect(undo).to_be_disabled()
    assert listed(page) == ["layer 0, head 0 × 0.5", "without the causal mask"]


def test_an_edit_that_can_t_be_is_answered_and_the_control_says_what_is(menu):
    page = menu(f"{HEAD}!{OTHER}")
    page.get_by_label("Edit: layer 0, head 1 × 0.5").click()
    head = edit(page, "Head")
    head.select_option("0")
    sentence = "The change wasn't edited: another change in the list affects the same part."
    expect(page.get_by_role("alert")).to_have_text(sentence)
    expect(head).to_have_value("1")
    assert told(page) is None
    edit(page, "Factor").fill("99")  # more than the dial has
    page.keyboard.press("Tab")
    assert told(page) is None
    page.evaluate("now => show(now)", HEAD)  # the host knows of others meanwhile
    assert listed(page) == ["layer 0, head 0 × 0.5"]


ADDED = {
    "A head": "layer 1, head 1 ablated",
    "An attention": "attention of layer 1 ablated",
    "A feed-forward layer": "feed-forward of layer 1 ablated",
    "The residual stream": "the stream before layer 1 ablated",
    "The embedding": "the embedding ablated",
    "A rule": "without the causal mask",
    "A weight of a head": "layer 1, head 1: query 0 gives key 0 the weight 1",
}
"""What the form adds at first, where head 1 of layer 1 is looked at."""


def test_the_form_adds_what_is_looked_at_until_something_else_is_chosen(menu):
    page = menu(module="blocks.1.attn")
    add = page.get_by_role("button", name="Change this")
    for what in ADDED:
        field(page, "What").select_option(what)
        add.click()
    assert listed(page) == [*ADDED.values()]
    field(page, "What").select_option("A rule")
    field(page, "Which").select_option("norm")
    field(page, "Where").select_option("blocks.0.")
    add.click()
    field(page, "What").select_option("A head")
    field(page, "Where").select_option("blocks.0.attn.hook_z")
    field(page, "How").select_option("Times a factor")
    field(page, "Factor").fill("0.3")
    add.focus()
    add.press("Enter")
    assert listed(page)[-2:] == ["without the norm's division in layer 0", "layer 0, head 1 × 0.3"]
    assert told(page).endswith("!without~norm~blocks.0.!scale~blocks.0.attn.hook_z~1~~0.3")
    assert found_by_axe(page) == []


@pytest.mark.parametrize("translates", [False, True])
def test_another_prompt_is_part_of_a_change_once_it_can_be_read(menu, translates):
    page = menu(**({"architecture": "encoder-decoder"} if translates else {}))
    add, status = (
        page.get_by_role("button", name="Change this"),
        page.locator(".change-problem:visible, .change-note:visible"),
    )
    field(page, "How").select_option("As on another prompt")
    for text, sentence in (
        ("", "Type a prompt into “The other prompt”."),
        ("?", "This model has never seen “?”."),
        ("a" * 9, "“The other prompt” has 9 tokens, and this model reads at most 8."),
        ("a", "The other prompt has 1 token, and yours 3: what comes after stays as it is."),
    ):
        field(page, "The other prompt").fill(text)
        expect(status).to_contain_text(sentence)
        expect(add).to_be_visible(visible=text == "a")
    add.click()
    other = "1.2~1" if translates else "1~"
    assert told(page).split("~")[0] == "from" and told(page).endswith(f"~~{other}")
    field(page, "How").select_option("Plus the difference between two prompts")
    expect(add).to_be_hidden()
    field(page, "Towards").fill("ab")
    field(page, "Away from").fill("abc")
    add.click()
    fields = "1.2~1.2~1.1~1.0~1.1.1" if translates else "1.1~1.1.1~~1.0~"
    assert told(page).split("!")[1].endswith(f"~~{fields}")
    field(page, "What").select_option("An attention")
    expect(field(page, "Towards")).to_have_value("ab")  # what was typed stays
