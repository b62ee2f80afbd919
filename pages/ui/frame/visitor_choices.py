"""Defines the choices of one visitor, which all pages share and links contain.

A field that links contain is annotated with what reads it from one. What the model decides is checked later.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, get_type_hints

from pages.ui.frame import link_values as read
from pages.ui.frame.link_values import Number, OneOf, SomeOf, Text
from pages.ui.frame.selection import DERIVATIONS, DIRECTIONS, FOLDS, LATEST, RULES, STAGES
from pages.ui.models.changes import Change
from pages.ui.models.changes import from_text as changes_from_text
from pages.ui.session.lesson_answers import MAX_STEPS
from transformer import MEASURES, TASKS, Sampling
from transformer.data.corpora import LONGEST_TEXT, SOURCES
from transformer.training.presets import LADDERS, RUNGS

DEFAULT_MODEL = "shakespeare"
"""The model of a link that names none."""
FIRST_MODEL = "stories"
"""The model that the app opens with."""
LONGEST = {
    "prompt": 5_000,
    "other_prompt": 2_000,
    "batch": 4_000,
    "text": 20_000,
    "model": 200,
    "other_model": 200,
    "inside": 200,
    "branches": 4_000,
    "own_text": LONGEST_TEXT,
    "change_toward": 500,
    "change_against": 500,
    "lesson": 80,
    "room": 20,
}
"""Characters a text may have."""
READS = ("chat", "plain")
PACES = {"slow": 2.0, "steady": 8.0, "fast": 25.0, "unbounded": float("inf")}
"""Tokens per second."""

HEADS = ("mean", "one")
QUESTIONS = ("ablation", "patching", "comparison", "ladder")
"""What the page What if can be asked."""
EARLIER_QUESTIONS = {"before": "ablation", "needed": "ablation", "traced": "patching", "beside": "comparison"}
"""What older links ask, and what it is called now."""
EFFECTS = ("probability", "logit", "loss")
BESIDE = ("prompts", "models", "changes")
"""What is put beside the prompt, the model, the changes of the view."""


def _question(text: str) -> str:
    return OneOf(*QUESTIONS)(EARLIER_QUESTIONS.get(text, text))


@dataclass
class Selection:
    """What the browser holds: the view, a text, and how it is generated; as in `frontend/view_state.js`."""

    written: Annotated[tuple[int, ...], read.written(LONGEST["text"])] = ()
    """The same as tokens, as the tab has told."""
    branches: Annotated[str, Text(LONGEST["branches"], r"[\d._*]*")] = ""
    """The text's other branches, as the browser writes them."""
    temperature: Annotated[float, Number(float, 0.0, 2.0, "the temperature")] = 0.8
    top_k: Annotated[int, Number(int, 0, 100, "top-k")] = 0
    """0: off."""
    top_p: Annotated[float, Number(float, 0.05, 1.0, "top-p")] = 1.0
    seed: Annotated[int, Number(int, 0, 2**31 - 1, "the seed")] = 1
    tokens: Annotated[int, Number(int, 1, 500, "the number of tokens")] = 200
    """How many tokens *Generate* writes."""
    pace: Annotated[str, OneOf(*PACES)] = "fast"
    attention: Annotated[str, OneOf("encoder", "decoder", "cross")] = "cross"
    """Which attention of an encoder–decoder is shown."""
    layer: Annotated[int | None, Number(int, 0, 1000, "the layer")] = None
    """None, for layer and head: what the model's card says is worth seeing first."""
    head: Annotated[int | None, Number(int, 0, 1000, "the head")] = None
    step: Annotated[int | None, read.position_or_token("the step")] = None
    """The token that is inspected, by its position in the whole text; None follows the newest."""
    stage: Annotated[str, OneOf(*STAGES)] = "weights"
    """The step from q · k to the weights that is shown where there is room for one."""
    query: Annotated[int | None, read.position_or_token("the query's position")] = None
    """The cell whose arithmetic is shown; None: the last query and its heaviest key."""
    key: Annotated[int | None, read.position_or_token("the key's position")] = None
    zoom: Annotated[tuple[int, int, int, int] | None, read.zoom] = None
    """The part of the text that is drawn: queries from and up to, keys from and up to. None: all of it."""
    without: Annotated[tuple[str, ...], SomeOf(tuple(sorted(RULES)))] = ()
    """What a head's picture is redrawn without: "mask", "scale"."""
    order: Annotated[str, OneOf("", *(measure.name for measure in MEASURES))] = ""
    """The measure that heads are sorted by; empty: by layer and head."""
    direction: Annotated[str, OneOf(*DIRECTIONS)] = "from"
    """Over the text: what a token looked at ("from"), or who looked at it ("to")."""
    derivation: Annotated[str, OneOf("", *DERIVATIONS)] = ""
    """Whether it is seen how the weights come about, "open" or "closed"; empty: if the rest of a link means that."""
    inside: Annotated[str, Text(LONGEST["inside"])] = ""
    """What is open on the page Inside: a tensor or a module of the model; empty: all of it."""
    place: Annotated[int | None, read.position_or_token("the token's position")] = None
    """The token that is looked at there, by its position in the whole text; None: the newest."""
    source_place: Annotated[int | None, read.position_or_token("the position in the source")] = None
    """The token of the source that is; None: none of them."""
    cell: Annotated[tuple[int, ...] | None, read.Integers(0, read.PLACE, 4, "the cell")] = None
    """A cell of the tensor that is open, by its indices."""
    heads: Annotated[str, OneOf(*HEADS)] = "mean"
    """Whether a layer's heads are drawn as their mean, or one of them."""
    moment: Annotated[float | None, Number(float, 0, LATEST, "the moment")] = None
    """Where Play stands; None: it isn't being played."""
    folds: Annotated[tuple[str, ...], SomeOf(FOLDS)] = ()
    """What is unfolded below the picture of the page Inside."""
    candidate: Annotated[int | None, read.position_or_token("the token")] = None
    """The token that is asked about there; None: the likeliest next one."""
    circuit: Annotated[tuple[str | int, ...] | None, read.circuit] = None
    """The circuit that is shown there: kind, attention, head, distance, and perhaps a cell; None: of what is open."""

    @property
    def sampling(self) -> Sampling:
        """The dials as the engine takes them."""
        return Sampling(self.temperature, self.top_k or None, self.top_p if self.top_p < 1 else None, self.seed)


@dataclass
class Training:
    """What the page Train has beside what it learns from, which stands in a link wherever one of these does."""

    task: Annotated[str, OneOf(*TASKS)] = "induction"
    corpus: Annotated[str | None, OneOf(*SOURCES)] = None
    """None until a text is asked for: then one that is on this machine."""
    shape: Annotated[str, OneOf("quick", "rung", "dials")] = "quick"
    rung: Annotated[str, OneOf(*(preset.name for rungs in RUNGS.values() for preset in rungs))] = "ladder-8-blocks"
    n_layers: Annotated[int, Number(int, 1, 6, "the number of layers")] = 2
    n_heads: Annotated[int, OneOf(1, 2, 4, 8)] = 4
    d_model: Annotated[int, OneOf(16, 32, 48, 64, 96, 128, 192)] = 64
    context: Annotated[int, OneOf(8, 16, 32, 64, 128)] = 32
    positions: Annotated[str, OneOf("sinusoidal", "learned", "rotary", "none")] = "sinusoidal"
    norm: Annotated[str, OneOf("pre", "post")] = "pre"
    steps: Annotated[int, Number(int, 50, 3000, "the number of steps")] = 500
    snapshot: Annotated[int | None, read.position_or_token("the step of the training")] = None
    """The step of a training that is looked at; None follows the newest."""


@dataclass
class Visitor(Training, Selection):
    """One visitor's choices. `None` stands for the default that the model or the text decides."""

    model: Annotated[str, Text(LONGEST["model"])] = DEFAULT_MODEL
    prompt: Annotated[str | None, Text(LONGEST["prompt"])] = None
    """None: the model's first example."""
    reads: Annotated[str, OneOf(*READS)] = "chat"
    """How a model that was tuned to answer reads the prompt: as a "chat", in its template, or as "plain" text."""
    text: Annotated[str, Text(LONGEST["text"])] = ""
    """What has been written after the prompt, as links had it that are older than `written`."""
    changes: Annotated[tuple[Change, ...], changes_from_text] = ()
    """What is changed in the model; those that are off are among them."""
    scope: Annotated[str, OneOf("prompt", "all")] = "prompt"
    question: Annotated[str, _question] = "ablation"
    """What is asked on the page What if."""
    effect: Annotated[str, OneOf(*EFFECTS)] = "probability"
    """What ablating a part has its effect on: the "probability" or the "logit" of a token, or the text's "loss"."""
    token: Annotated[int | None, read.position_or_token("the token")] = None
    """That token; None: the likeliest next one."""
    other_prompt: Annotated[str | None, Text(LONGEST["other_prompt"])] = None
    """A prompt beside the prompt; None: one that is suggested for it."""
    own_token: Annotated[int | None, read.position_or_token("the prompt's token")] = None
    """What is traced: the token that the prompt leads to; None, for either: the likeliest."""
    other_token: Annotated[int | None, read.position_or_token("the other prompt's token")] = None
    """The one that the other prompt leads to."""
    ladder: Annotated[str, OneOf(*LADDERS)] = "first"
    """Which one a prompt is put on."""
    beside: Annotated[str, OneOf(*BESIDE)] = "prompts"
    other_model: Annotated[str | None, Text(LONGEST["other_model"])] = None
    """The model beside the model; None: one that has something in common with it."""
    length: Annotated[int, Number(int, 2, 512, "the length of the table")] = 64
    """Rows of the sinusoidal table."""
    width: Annotated[int, Number(int, 2, 512, "the width of the table")] = 64
    base: Annotated[float, Number(float, 2, 1e6, "the base")] = 10000.0
    position: Annotated[int, Number(int, 0, 511, "the position")] = 5
    dimension: Annotated[int, Number(int, 0, 511, "the dimension")] = 4
    waves: Annotated[tuple[int, ...] | None, read.Integers(0, 511, 6, "the waves", distinct=True)] = None
    """The dimensions whose waves are drawn; None: a few that tell the story."""
    shift: Annotated[int, Number(int, 0, 511, "the shift")] = 6
    filler: Annotated[int, Number(int, 0, 8, "the number of padding tokens")] = 3
    """Padding tokens after the prompt, on the page Masks."""
    masks_shown: Annotated[int, Number(int, 8, 10**4, "the number of tokens shown")] = 32
    """Tokens of its masks, from the end, if there are more."""
    positions_shown: Annotated[int, Number(int, 8, 10**4, "the number of tokens shown")] = 32
    """Tokens of its predictions."""
    batch: Annotated[str | None, Text(LONGEST["batch"])] = None
    """Prompts of unequal length, one a line; None: made from the model's examples."""
    batch_row: Annotated[int, Number(int, 0, 7, "the prompt of the batch")] = 0
    """The prompt of the batch whose masks are shown."""
    pad_side: Annotated[str, OneOf("right", "left")] = "right"
    learn: Annotated[str, OneOf("task", "text", "own")] = "text"
    """What the page Train learns from: a task, a text that ships, or the visitor's own."""
    own_text: str = ""
    """A text that was pasted; not part of any link."""
    room: Annotated[str, Text(LONGEST["room"])] = ""
    """The code of a room that is to be joined, as it was typed or as a link brought it."""
    lesson: Annotated[str, Text(LONGEST["lesson"])] = ""
    """The lesson that is open on the page Learn; empty: the list of them."""
    lesson_step: Annotated[int, Number(int, 0, MAX_STEPS, "the step of the lesson")] = 0
    answers: Annotated[str, read.answers] = ""
    """What was answered in the lessons, if the visitor wants it in the link."""
    notices: list[str] = field(default_factory=list)
    """What was wrong in the link, to be said once."""


def fields(kind: type = Visitor) -> list[str]:
    """The names of the visitor's fields, or of those of one kind; notices left out."""
    return [entry.name for entry in dataclasses.fields(kind) if entry.name != "notices"]


_HINTS = get_type_hints(Visitor, include_extras=True)
PARSERS: dict[str, Callable[[str], Any]] = {
    name: _HINTS[name].__metadata__[0]
    for kind in (Visitor, Selection, Training)
    for name in kind.__annotations__
    if hasattr(_HINTS[name], "__metadata__")
}
"""How each field is read from a link, in the order of a link."""
