"""Opens a link and reads what a visitor sees; only this file knows how the app shows it.

`test_old_links.py` and its file of links know nothing of how the app is made. Where that changes, this file does.
"""

from __future__ import annotations

import json
import re
from typing import Any

from pages.ui.markdown import JOINER
from tests.app_driver import ROOT, dials, given, looked_at, open_folds, outline, overview, start, tab_of, writing
from transformer import load_checkpoint

INSTRUMENTS = {"Generate": "headsup_generation", "Attention": "headsup_attention", "Inside": "headsup_inside"}
DIALS = {"temperature": "Temperature", "top_k": "Top-k", "top_p": "Top-p", "seed": "Seed", "tokens": "Number of tokens"}
"""What the dials beside a text are called."""


class Seen:
    """A page that was opened by a link.

    Positions count from the first token of the whole text, as they do in links, whatever part of it a model reads.
    """

    def __init__(self, page: str, parameters: dict[str, str]) -> None:
        self.at = start(page, **parameters)
        self._said = [box.value for kind in ("info", "success", "warning", "error") for box in getattr(self.at, kind)]
        if any("-fold_" in each.proto.id for each in self.at.expander):
            open_folds(self.at)
        self._drawn = {each.proto.component_name for each in self.at.get("bidi_component")}

    @property
    def title(self) -> str:
        """The page's heading."""
        return self.at.title[0].value

    @property
    def model(self) -> str:
        """The title of the picked model; on a page without a picker, of the one that the next will have picked."""
        for picker in self.at.selectbox:
            if picker.label == "Model":
                return picker.options[picker.index].rpartition(" · ")[2]
        return load_checkpoint(ROOT / "checkpoints" / self.at.session_state["visitor"].model).card.title

    @property
    def prompt(self) -> str:
        """What stands in the box of the prompt, or of the source; on a page without one, what will on the next."""
        boxes = [box for box in self.at.text_area if box.key == "tied_prompt"]
        return boxes[0].value if boxes else self.at.session_state["visitor"].prompt

    @property
    def changes(self) -> dict[str, bool]:
        """What is changed in the model, and whether that is on; without a picker, of the model on the next page."""
        if not any(each.label == "Model" for each in self.at.selectbox):
            return {str(each): each.on for each in self.at.session_state["visitor"].changes}
        return {_plain(each.label): each.value for each in self.at.checkbox}

    @property
    def views(self) -> list[str]:
        """The pages whose instruments or dials are on screen; a lesson shows that of another page."""
        labels = {each.label for each in _widgets(self.at.main)}
        told = {
            "Masks": "headsup_masks" in self._drawn,
            "Positions": "Length: positions" in labels,
            "What if": "Question" in labels,
            "Train": "Kind" in labels,
        }
        told |= {page: name in self._drawn for page, name in INSTRUMENTS.items()}
        return sorted(page for page, is_drawn in told.items() if is_drawn)

    @property
    def text(self) -> str:
        """What has been written, where it is tinted; special tokens by their names. What is ahead isn't seen."""
        found = writing(self.at)
        return "".join(found.metadata["kinds"][str(each)][1] for each in found.tensors["ids"])

    @property
    def reads(self) -> str:
        """The labels of the tokens that the instrument shows, one after another."""
        about = (overview if "headsup_attention" in self._drawn else outline)(self.at).metadata
        return "".join(about["labels"]["text"])

    @property
    def widgets(self) -> dict[str, Any]:
        """What each widget says, by its label; of several with one label, all. Dials beside a text are among them."""
        found: dict[str, Any] = {}
        for each in _widgets(self.at.main):
            found[each.label] = [found[each.label], _value(each)] if each.label in found else _value(each)
        if "headsup_generation" in self._drawn:
            turned = dials(self.at)
            found |= {DIALS[name]: value for name, value in turned.items() if name in DIALS}
            found["Pace"] = dict(given(self.at)["choices"]["paces"])[turned["pace"]]
        return found

    @property
    def looked(self) -> dict[str, Any]:
        """What the instrument shows first, less what it shows anyway; nothing where there is none."""
        at_start = {"stage": "weights", "direction": "from", "attention": "self", "derivation": False}
        return {
            name: value for name, value in self._looked().items() if value not in (None, "", [], at_start.get(name))
        }

    def _looked(self) -> dict[str, Any]:
        if "headsup_generation" in self._drawn:
            step = tab_of(self.at).looked.get("step")
            chosen = {name: dials(self.at)[name] for name in ("attention", "layer", "head")}
            return {"step": step and int(step), **(chosen if chosen["attention"] else {})}
        if "headsup_attention" in self._drawn:
            found, about = looked_at(self.at), overview(self.at).metadata
            rows, columns = about["offsets"]["queries"], about["offsets"]["keys"]
            sides = {"top": rows, "bottom": rows, "left": columns, "right": columns}
            zoom = found["zoom"] and [found["zoom"][side] + first for side, first in sides.items()]
            places = {"query": _moved(found["query"], rows), "key": _moved(found["key"], columns), "zoom": zoom}
            return {**found, **places, "attention": about["kind"]}
        if "headsup_inside" in self._drawn:
            found = looked_at(self.at)
            return {**found, "token": _moved(found["token"], outline(self.at).metadata["offset"])}
        return {}

    @property
    def says(self) -> str:
        """All sentences that inform, warn or report an error."""
        return _plain(" ".join(dict.fromkeys(self._said)))

    @property
    def shows(self) -> str:
        """All words of the page itself, without those in boxes: headings, sentences, figures, and those of pictures."""
        main = self.at.main
        words = [each.value for each in (*main.header, *main.markdown, *main.caption)]
        words += [f"{each.label} {each.value}" for each in main.metric]
        words += [
            json.dumps(json.loads(each.proto.json), ensure_ascii=False)
            for each in main.get("bidi_component")
            if each.proto.component_name in ("headsup_masks", "headsup_effect_heatmaps")
        ]
        return _plain(" ".join(words))


def _widgets(block: Any) -> list[Any]:
    kinds = (
        "selectbox",
        "slider",
        "select_slider",
        "number_input",
        "multiselect",
        "text_area",
        "text_input",
        "radio",
        "button_group",
    )
    return [each for kind in kinds for each in getattr(block, kind)]


def _value(widget: Any) -> Any:
    """What a widget says: a number as a number, a choice as it is worded, without the figures that a column adds."""
    match widget.type:
        case "selectbox" | "radio":
            return None if widget.index is None else widget.options[widget.index].partition("   ")[0]
        case "button_group":
            chosen = [widget.options[index] for index in widget.indices]
            return chosen[0] if len(chosen) == 1 else chosen
    return widget.value


def _moved(place: int | None, by: int) -> int | None:
    return None if place is None else place + by


def _plain(text: str) -> str:
    """Markdown without what keeps it from being read as such."""
    return re.sub(rf"\\(?=[^\w\s]|_)|{JOINER}", "", text)
