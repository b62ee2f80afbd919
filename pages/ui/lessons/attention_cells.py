"""Labels the attention picture of a question that asks for a cell."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pages.ui.computations import activations
from pages.ui.lessons.measure_setup import Setup
from pages.ui.markdown import code
from pages.ui.models import library
from transformer import attention_modules

MAX_CELLS = 32
"""Queries, and keys, of a picture: the last of a longer text."""


class Picture(NamedTuple):
    """queries, keys: labels. begin: the positions of the first of them. causal: whether later keys are hidden."""

    queries: list[str]
    keys: list[str]
    begin: tuple[int, int]
    causal: bool
    label: str

    def within(self, cell: Sequence[int]) -> list[int]:
        """A query and a key by their positions in the text, as rows and columns of the picture."""
        return [cell[0] - self.begin[0], cell[1] - self.begin[1]]

    def in_words(self, cell: Sequence[int]) -> str:
        """A cell in words, as Markdown."""
        names = [
            code(labels[position]) if 0 <= position < len(labels) else "another"
            for labels, position in zip((self.queries, self.keys), self.within(cell), strict=True)
        ]
        return f"{names[0]} ({cell[0]}) looks at {names[1]} ({cell[1]})"


def picture(link: Mapping[str, str], layer: int | None, head: int | None, attention: str) -> Picture | None:
    """The picture of a head; None in a model without attention.

    link: the parameters of the view, which say what layer, head and attention leave open.
    """
    setup = Setup.of(link, {})
    kinds = attention_modules(library.config(setup.name))
    wish = attention or link.get("attention", "")
    kind = wish if wish in kinds else next(reversed(kinds), "")
    if not kind:
        return None
    queries = setup.source if kind == "encoder" else setup.window
    if kind == "cross":
        text = setup.tokens  # and what is written after it, of which the last asks no more
        queries = text + activations.answer(setup.name, text, setup.source, setup.interventions)[:-1]
        queries = queries[: library.config(setup.name).context_length]
    keys = setup.source if kind in ("encoder", "cross") else queries
    begins = [0 if kind in ("encoder", "cross") else setup.begin] * 2
    first = [max(len(tokens) - MAX_CELLS, 0) for tokens in (queries, keys)]
    labels = setup.tokenizer.labels
    at = {name: link.get(name, "0")[:4] if own is None else own for name, own in (("layer", layer), ("head", head))}
    return Picture(
        labels(queries[first[0] :]),
        labels(keys[first[1] :]),
        (begins[0] + first[0], begins[1] + first[1]),
        causal=kind in ("self", "decoder"),
        label=f"The cells of head {at['head']} of layer {at['layer']}",
    )
