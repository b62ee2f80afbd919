"""Tests that old links, of handouts, lessons and bookmarks, still open the same view.

The files beside this one hold them. `query` is what stood in the address bar; the rest of an entry is what is seen, and
`link_view.py` says how that is found out. Model and prompt are those of the address, unless the entry has others. What
else an entry doesn't name isn't asked about, except for notices, changes and what is looked at: where it names none,
there is none. `long` gives parameters of so many letters; `absent` names a model without which the entry holds.

All of them are read as the app reads an address; those that have something that no link before them has are opened.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from pages.ui.frame.url_parameters import from_query, to_query
from pages.ui.lessons import lesson_files
from pages.ui.models.lesson_answers import StepId
from tests.app_driver import ROOT
from tests.links.link_view import Seen

FOLDER = Path(__file__).parent
PAGES = {
    "attention": "Attention",
    "generate": "Generate",
    "inside": "Inside",
    "learn": "Learn",
    "masks": "Masks",
    "positions": "Positions",
    "train": "Train",
    "what_if": "What if",
    **dict.fromkeys(("lesson_answers", "lesson_views", "lessons"), "Learn"),
}
PARAMETERS = set(
    re.findall(
        r"\w+",
        """
    model prompt reads text changes temperature top_k top_p seed tokens pace attention layer head step scope stage
    query key zoom without order direction inside place source_place cell heads moment folds candidate circuit
    question effect token other_prompt own_token other_token ladder beside other_model length width base position
    dimension waves shift filler masks_shown positions_shown batch batch_row pad_side learn task corpus shape rung
    n_layers n_heads d_model context positions norm steps snapshot room lesson lesson_step answers
""",
    )
)
"""All that an address could have when these links were made."""


def _read() -> dict[str, dict[str, Any]]:
    found = {}
    for file in sorted(FOLDER.glob("*.toml")):
        for name, link in tomllib.loads(file.read_text(encoding="utf-8")).items():
            asked = dict(parse_qsl(link["query"], keep_blank_values=True))
            seen = {"prompt": asked["prompt"]} if "prompt" in asked else {}
            if (card := ROOT / "checkpoints" / asked.get("model", "") / "card.json").is_file():
                seen["model"] = json.loads(card.read_text(encoding="utf-8"))["title"]
            asked |= {each: "a" * letters for each, letters in link.get("long", {}).items()}
            found[f"{file.stem}: {name}"] = {"page": PAGES[file.stem], **seen, **link, "asked": asked}
    return found


LINKS = _read()


def _has_something_new() -> list[str]:
    """Links with a parameter, or a widget or a view on their page, that no link before them has. What is said of one
    that is wrong is what `test_links.py` and each page's own tests ask about."""
    found, known = [], set()
    for name, link in LINKS.items():
        seen = [] if name.startswith("lesson") else [*link.get("widgets", {})]
        new = {(link["page"], each) for each in (*seen, str(link.get("views")))}
        new |= {*link["asked"], link.get("absent")}
        if new - known and ("says" not in link or link["page"] == "Learn"):
            found.append(name)
            known |= new
    return found


@pytest.mark.usefixtures("quick_app_test")
@pytest.mark.parametrize("name", _has_something_new())
def test_an_old_link_opens_the_view_that_it_was_made_of(name: str) -> None:
    link = LINKS[name]
    if "absent" in link and (ROOT / "checkpoints" / link["absent"]).exists():
        pytest.skip(f"{link['absent']} is here, and this says what is seen without it")
    seen = Seen(link["page"], link["asked"])
    assert seen.title == link["page"]
    for part in {"model", "prompt", "text", "reads", "views"} & link.keys():
        assert getattr(seen, part) == link[part], part
    assert seen.changes == link.get("changes", {})
    assert seen.looked == link.get("looked", {})
    assert {label: seen.widgets.get(label) for label in link.get("widgets", {})} == link.get("widgets", {})
    for sentence in link.get("shows", []):
        assert sentence in seen.shows
    for sentence in link.get("says", []):
        assert sentence in seen.says
    assert "says" in link or not seen.says


OF_A_VIEW = {"open": "inside", "token": "place", "source": "source_place"}
"""What parts of the page Inside that are looked at are called in a link."""


@pytest.mark.parametrize("name", LINKS)
def test_an_old_link_is_read_as_it_was_meant(name: str) -> None:
    link = LINKS[name]
    found = from_query(link["asked"])
    if "says" not in link:
        assert not found.notices
        assert from_query(to_query(found)) == found
    for sentence in link.get("says", []):
        if " = “" in sentence or "at most" in sentence:
            assert sentence in " ".join(found.notices)
    if "lesson" in link["asked"]:
        step_id = lesson_files.current_step(StepId(found.lesson, found.lesson_step))
        if "shows" in link and (lesson := lesson_files.lesson(step_id.lesson)):
            assert {lesson.title, f"step {step_id.step + 1} of {len(lesson.steps)}"} >= set(link["shows"])
        return
    if "prompt" in link["asked"] and not found.notices:
        assert found.prompt == link["prompt"]
    if "says" not in link:
        assert {str(each): each.on for each in found.changes} == link.get("changes", {})
    for part, seen in link.get("looked", {}).items():
        value = getattr(found, OF_A_VIEW.get(part, part), None)
        if OF_A_VIEW.get(part, part) in link["asked"] and "says" not in link:
            assert (list(value) if isinstance(value, tuple) else value) == seen, part


def test_every_parameter_of_an_address_is_in_a_link_that_has_nothing_wrong_with_it():
    came = "This link came with answers"
    sound = [link["asked"] for link in LINKS.values() if came in link.get("says", [came])]
    assert set().union(*sound) >= PARAMETERS


def test_links_to_every_page_are_opened():
    assert {LINKS[name]["page"] for name in _has_something_new()} == set(PAGES.values())
    assert not [name for name, link in LINKS.items() if not {"prompt", "looked", "views", "says"} & link.keys()]
