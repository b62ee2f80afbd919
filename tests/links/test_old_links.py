"""Tests that old links, of handouts, lessons and bookmarks, still open the same view.

The files beside this one hold them. `query` is what stood in the address bar; the rest of an entry is what is seen, and
`link_view.py` says how that is found out. Model and prompt are those of the address, unless the entry has others. What
else an entry doesn't name isn't asked about, except for notices, changes and what is looked at: where it names none,
there is none. `long` gives parameters of so many letters; `absent` names a model without which the entry holds.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

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


def _read() -> list[tuple[str, dict[str, Any]]]:
    found = []
    for file in sorted(FOLDER.glob("*.toml")):
        for name, link in tomllib.loads(file.read_text(encoding="utf-8")).items():
            asked = dict(parse_qsl(link["query"], keep_blank_values=True))
            seen = {"prompt": asked["prompt"]} if "prompt" in asked else {}
            if (card := ROOT / "checkpoints" / asked.get("model", "") / "card.json").is_file():
                seen["model"] = json.loads(card.read_text(encoding="utf-8"))["title"]
            found.append((f"{file.stem}: {name}", {"page": PAGES[file.stem], **seen, **link}))
    return found


LINKS = _read()


@pytest.mark.usefixtures("quick_app_test")
@pytest.mark.parametrize("link", [link for _, link in LINKS], ids=[name for name, _ in LINKS])
def test_an_old_link_opens_the_view_that_it_was_made_of(link: dict[str, Any]) -> None:
    if "absent" in link and (ROOT / "checkpoints" / link["absent"]).exists():
        pytest.skip(f"{link['absent']} is here, and this says what is seen without it")
    seen = Seen(link["page"], link["query"] + "".join(f"&{name}={'a' * n}" for name, n in link.get("long", {}).items()))
    assert seen.title == link["page"]
    for name in {"model", "prompt", "text", "reads", "views"} & link.keys():
        assert getattr(seen, name) == link[name], name
    assert seen.changes == link.get("changes", {})
    assert seen.looked == link.get("looked", {})
    assert {label: seen.widgets.get(label) for label in link.get("widgets", {})} == link.get("widgets", {})
    for sentence in link.get("shows", []):
        assert sentence in seen.shows
    for sentence in link.get("says", []):
        assert sentence in seen.says
    assert "says" in link or not seen.says


def test_every_parameter_of_an_address_is_in_a_link_that_has_nothing_wrong_with_it():
    came = "This link came with answers"
    sound = [link["query"] for _, link in LINKS if came in link.get("says", [came])]
    assert {name for query in sound for name, _ in parse_qsl(query, keep_blank_values=True)} >= PARAMETERS


def test_there_are_links_to_every_page():
    assert {link["page"] for _, link in LINKS} == set(PAGES.values())
    assert not [name for name, link in LINKS if not {"prompt", "looked", "views", "says"} & link.keys()]
