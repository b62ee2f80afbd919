"""The page Inside and its feed in a real browser: what is asked for comes, and what is open is saved."""

import pytest

from transformer import Recording

pytest.importorskip("playwright.sync_api")

BOX = "globalThis.headsupBoxes?.get('inside')"
ASK = f"(parts) => {BOX}.send('want', {{ id: {BOX}.feed.metadata.id, parts }})"
HAS = f"(name) => {BOX}.feed.tensors[name]?.shape"
LOADED = "(part) => performance.getEntriesByType('resource').some(({ name }) => name.includes(part))"
LOOK_AT = f"""(changes) => {BOX}.send("chosen", {{ ...{BOX}.feed.metadata.chosen, ...changes, count: Date.now() }})"""


@pytest.fixture
def page(tiny_server, new_page, wait_ready):
    """A visitor who has followed a link to a tensor."""
    page = new_page()
    page.goto(f"{tiny_server.url}/Inside?prompt=To%20be&inside=blocks.1.attn.hook_pattern")
    page.wait_for_function(f"() => {BOX}?.feed", timeout=60_000)
    wait_ready(page, timeout=60)
    return page


def test_parts_come_when_they_are_asked_for(page):
    assert page.evaluate(f"() => {BOX}.feed.metadata.chosen.open") == "blocks.1.attn.hook_pattern"
    page.evaluate(ASK, [["tensor", "logits"], ["slice", "blocks.0.attn.qkv.weight", 1], ["who", 4, 7], ["nonsense"]])
    page.wait_for_function(HAS, arg="logits")
    assert page.evaluate(HAS, "logits")[0] == 5
    assert page.evaluate(HAS, "blocks.0.attn.qkv.weight[1]") == [3, 8, 16]
    names = page.evaluate(f"() => {BOX}.feed.metadata.who.names")
    assert page.evaluate(HAS, "who[4, 7]") == [len(names)]


def test_what_is_open_is_in_the_address_and_is_what_is_saved_without_a_run_of_the_page(page, wait_ready):
    run = page.evaluate(f"() => {BOX}.feed.metadata.run")
    page.evaluate(LOOK_AT, {"open": "blocks.0.mlp", "token": 2, "head": 1})
    page.wait_for_function("() => /inside=blocks\\.0\\.mlp&place=2&heads=one/.test(location.search)")
    assert page.evaluate(f"() => {BOX}.feed.metadata.run") == run
    assert not page.evaluate(LOADED, "SyntaxHighlighter"), "1.5 MB that the picture doesn't need"
    for words in ("Take this view along", "Take these numbers along"):
        page.get_by_test_id("stMain").locator("summary", has_text=words).click()
        wait_ready(page)
    page.set_viewport_size({"width": 420, "height": 900})
    for lines in page.get_by_test_id("stCode").locator("pre").all():  # which can't be reached by keys, to be scrolled
        assert lines.evaluate("(pre) => pre.scrollWidth <= pre.clientWidth")
    assert "open='blocks.0.mlp', token=2, head=1" in page.get_by_test_id("stCode").first.inner_text()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save these numbers").click()
    saved = Recording.from_bytes(download.value.path().read_bytes())
    assert download.value.suggested_filename == "shakespeare-inside.safetensors"
    assert saved.tensors.keys() == {f"blocks.0.mlp.{name}" for name in (
        "hook_pre", "hook_post", "up.weight", "up.bias", "down.weight", "down.bias"
    )}  # fmt: skip
    assert saved.tensors["blocks.0.mlp.hook_pre"].shape == (5, 64) and len(saved.metadata["labels"]["text"]) == 5
