"""Tests that old links, of handouts, lessons and bookmarks, still open the same view.

`old_links.toml` has them. Model and prompt are those of the address, unless an entry has others. What else an entry
doesn't name isn't asked about, except for notices, changes and what is looked at: where it names none, there is none.
`absent` names a model without which the entry holds. `Seen` alone knows how the app shows what an entry names.
"""

import json
import re
import tomllib
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from pages.ui.markdown import JOINER
from pages.ui.models.changes import BETWEEN, OFF
from tests.app_driver import (
    ROOT,
    component,
    dials,
    given,
    looked_at,
    open_folds,
    outline,
    overview,
    page_state,
    prompt,
    said,
    shown,
    start,
    tab_of,
    told_of,
    writing,
)
from transformer import load_checkpoint
from transformer.inference.intervention_codes import from_code

FOLDER = Path(__file__).parent
LINKS = tomllib.loads((FOLDER / "old_links.toml").read_text(encoding="utf-8"))
PARAMETERS = set(
    re.findall(
        r"\w+",
        """
    model prompt reads changes temperature top_k top_p seed tokens pace attention layer head step scope stage
    query key zoom without order direction inside place source_place cell heads moment folds candidate circuit
    question effect token other_prompt own_token other_token ladder beside other_model length width base position
    dimension waves shift filler masks_shown positions_shown batch batch_row pad_side learn task corpus shape rung
    n_layers n_heads d_model context positions norm steps snapshot room lesson lesson_step answers
""",
    )
)
"""All that an address could have when these links were made."""


def parameters_of(address):
    return dict(parse_qsl(address.partition("?")[2], keep_blank_values=True))


def test_every_parameter_of_an_address_is_in_a_link():
    assert set().union(*map(parameters_of, LINKS)) >= PARAMETERS


@pytest.mark.usefixtures("quick_app_test")
@pytest.mark.parametrize("address", LINKS)
def test_an_old_link_opens_the_view_that_it_was_made_of(address):
    link, parameters, page = LINKS[address], parameters_of(address), address.partition("?")[0]
    if "absent" in link and (ROOT / "checkpoints" / link["absent"]).exists():
        pytest.skip(f"{link['absent']} is here, and this says what is seen without it")
    card = ROOT / "checkpoints" / parameters.get("model", "shakespeare") / "card.json"
    expected = {"model": json.loads(card.read_text(encoding="utf-8"))["title"], "changes": {}, "looked": {}}
    expected |= {name: parameters[name] for name in ("prompt",) if name in parameters} | link
    seen = Seen(page, parameters)
    assert seen.at.session_state["page"] == page
    for part in {"model", "prompt", "text", "reads", "views", "changes", "looked"} & expected.keys():
        assert getattr(seen, part)() == expected[part], part
    assert seen.widgets().items() >= link.get("widgets", {}).items()
    assert [sentence for sentence in link.get("shows", []) if sentence not in seen.shows()] == []
    assert [sentence for sentence in link.get("says", []) if sentence not in seen.says] == []
    assert "says" in link or not seen.says


INSTRUMENTS = {
    "Generate": "headsup_generation",
    "Attention": "headsup_attention",
    "Inside": "headsup_inside",
    "Masks": "headsup_masks",
    "What if": "headsup_what_if",
}
DIALS = {"temperature": "Temperature", "top_k": "Top-k", "top_p": "Top-p", "seed": "Seed", "tokens": "Number of tokens"}
"""What the dials beside a text are called."""
WIDGETS = "selectbox slider select_slider number_input multiselect text_area text_input radio button_group"


class Seen:
    """A page that was opened by a link. Positions count from the first token of the whole text, as they do in links."""

    def __init__(self, page, parameters):
        self.at = start(page, **parameters)
        self.says = _plain(said(self.at))
        if any("-fold_" in each.proto.id for each in self.at.expander):
            open_folds(self.at)
        self._drawn = {each.proto.component_name for each in self.at.get("bidi_component")}
        view = told_of(self.at)["view"] or page
        if about := view in INSTRUMENTS and shown(self.at)["about"]:  # the shell draws it
            is_filling = view == "Generate" and "mask" in about
            self._drawn.add("headsup_filling" if is_filling else INSTRUMENTS[view])
        self._widgets = [each for kind in WIDGETS.split() for each in getattr(self.at.main, kind)]

    def model(self):
        """The title of the model that is shown."""
        return load_checkpoint(ROOT / "checkpoints" / page_state(self.at).model).card.title

    def prompt(self):
        return prompt(self.at)

    def changes(self):
        """What is changed in the model, and whether that is on."""
        codes = filter(None, page_state(self.at).changes.split(BETWEEN))
        return {str(from_code(code.removeprefix(OFF))): not code.startswith(OFF) for code in codes}

    def views(self):
        """The pages whose instruments or dials are on screen; a lesson shows that of another page."""
        labels = {each.label for each in self._widgets}
        of_label = {"Positions": "Dimensions", "Train": "Kind"}
        found = {page for page, label in of_label.items() if label in labels}
        found |= {page for page, name in INSTRUMENTS.items() if name in self._drawn}
        return sorted(found)

    def text(self):
        """What has been written; special tokens by their names."""
        found = writing(self.at)
        return "".join(found.metadata["kinds"][str(each)][1] for each in found.tensors["ids"])

    def reads(self):
        """The labels of the tokens that the instrument shows, one after another."""
        about = (overview if "headsup_attention" in self._drawn else outline)(self.at).metadata
        return "".join(about["labels"]["text"])

    def widgets(self):
        """What each widget says, by its label; of several with one label, all. Dials beside a text are among them."""
        found = {}
        for each in self._widgets:
            found[each.label] = [found[each.label], _value(each)] if each.label in found else _value(each)
        picture, link = shown(self.at), tab_of(self.at).values
        if self._drawn & {"headsup_masks", "headsup_what_if"}:
            found |= {choice["label"]: choice["value"] for choice in picture["choices"]}
        if "headsup_what_if" in self._drawn:
            found |= link | {"Another prompt": (picture["about"].get("other") or {}).get("text")}
        if "headsup_masks" in self._drawn:
            found["Tokens of the masks"] = picture["about"]["shown"]
            found["Padding tokens after the prompt"] = link.get("filler")
        if "headsup_generation" in self._drawn:
            turned = dials(self.at)
            found |= {DIALS[name]: value for name, value in turned.items() if name in DIALS}
            found["Pace"] = dict(given(self.at)["choices"]["paces"])[turned["pace"]]
        return found

    def looked(self):
        """What the instrument shows first, less what it shows anyway; nothing where there is none."""
        found = {}
        if "headsup_generation" in self._drawn:
            step, turned = tab_of(self.at).values.get("step"), dials(self.at)
            shown = {name: turned[name] for name in ("attention", "layer", "head")} if turned["attention"] else {}
            found = {"step": step and int(step), **shown}
        elif "headsup_attention" in self._drawn:
            found, about = looked_at(self.at), overview(self.at).metadata
            rows, columns = about["offsets"]["queries"], about["offsets"]["keys"]
            sides = {"top": rows, "bottom": rows, "left": columns, "right": columns}
            zoom = found["zoom"] and [found["zoom"][side] + first for side, first in sides.items()]
            found |= {"query": _moved(found["query"], rows), "key": _moved(found["key"], columns), "zoom": zoom}
            found["attention"] = about["kind"]
        elif "headsup_inside" in self._drawn:
            found = looked_at(self.at)
            found["token"] = _moved(found["token"], outline(self.at).metadata["offset"])
        at_start = {"stage": "weights", "direction": "from", "attention": "self", "derivation": False}
        return {name: value for name, value in found.items() if value not in (None, "", [], at_start.get(name))}

    def shows(self):
        """All words of the page itself, without those in boxes: headings, sentences and figures."""
        main = self.at.main
        words = [each.value for each in (*main.header, *main.markdown, *main.caption)]
        words += told_of(self.at)["page"].values()
        words += [component(self.at, name).json for name in self._drawn & {"headsup_lesson_list"}]
        return _plain(" ".join([*words, *(f"{each.label} {each.value}" for each in main.metric)]))


def _value(widget):
    """What a widget says: a number as a number, a choice as it is worded, without the figures that a column adds."""
    match widget.type:
        case "selectbox" | "radio":
            return None if widget.index is None else widget.options[widget.index].partition("   ")[0]
        case "button_group":
            chosen = [widget.options[index] for index in widget.indices]
            return chosen[0] if len(chosen) == 1 else chosen
    return widget.value


def _moved(place, by):
    return None if place is None else place + by


def _plain(text):
    """Markdown without what keeps it from being read as such."""
    return re.sub(rf"\\(?=[^\w\s]|_)|{JOINER}", "", text)
