"""Defines the choices of one visitor, which all pages share and links contain.

`parameters.json` says how links have them. What the model decides is checked later.
"""

import dataclasses
from dataclasses import dataclass, field

from pages.ui.host.page_state import DEFAULT_MODEL, PARAMETERS
from pages.ui.models.changes import Change
from transformer import Sampling
from transformer.data.corpora import LONGEST_TEXT

LONGEST = {name: row["longest"] for name, row in PARAMETERS.items() if row["kind"] in ("text", "hook")}
LONGEST |= {"own_text": LONGEST_TEXT}
"""Characters a text may have."""


@dataclass
class Selection:
    """What the browser holds: the view, a text, and how it is generated."""

    written: tuple[int, ...] = ()
    """The same as tokens, as the tab has told."""
    branches: str = ""
    """The text's other branches, as the browser writes them."""
    temperature: float = 0.8
    top_k: int = 0
    """0: off."""
    top_p: float = 1.0
    seed: int = 1
    tokens: int = 200
    """How many tokens *Generate* writes."""
    pace: str = "fast"
    attention: str = "cross"
    """Which attention of an encoder–decoder is shown."""
    layer: int | None = None
    """None, for layer and head: what the model's card says is worth seeing first."""
    head: int | None = None
    step: int | None = None
    """The token that is inspected, by its position in the whole text; None follows the newest."""
    stage: str = "weights"
    """The step from q · k to the weights that is shown where there is room for one."""
    query: int | None = None
    """The cell whose arithmetic is shown; None: the last query and its heaviest key."""
    key: int | None = None
    zoom: tuple[int, int, int, int] | None = None
    """The part of the text that is drawn: queries from and up to, keys from and up to. None: all of it."""
    without: tuple[str, ...] = ()
    """What a head's picture is redrawn without: "mask", "scale"."""
    order: str = ""
    """The measure that heads are sorted by; empty: by layer and head."""
    direction: str = "from"
    """Over the text: what a token looked at ("from"), or who looked at it ("to")."""
    derivation: str = ""
    """Whether it is seen how the weights come about, "open" or "closed"; empty: if the rest of a link means that."""
    inside: str = ""
    """What is open on the page Inside: a tensor or a module of the model; empty: all of it."""
    place: int | None = None
    """The token that is looked at there, by its position in the whole text; None: the newest."""
    source_place: int | None = None
    """The token of the source that is; None: none of them."""
    cell: tuple[int, ...] | None = None
    """A cell of the tensor that is open, by its indices."""
    heads: str = "mean"
    """Whether a layer's heads are drawn as their mean, or one of them."""
    moment: float | None = None
    """Where Play stands; None: it isn't being played."""
    folds: tuple[str, ...] = ()
    """What is unfolded below the picture of the page Inside."""
    candidate: int | None = None
    """The token that is asked about there; None: the likeliest next one."""
    circuit: tuple[str | int, ...] | None = None
    """The circuit that is shown there: kind, attention, head, distance, and perhaps a cell; None: of what is open."""

    @property
    def sampling(self) -> Sampling:
        """The dials as the engine takes them."""
        return Sampling(self.temperature, self.top_k or None, self.top_p if self.top_p < 1 else None, self.seed)


@dataclass
class Training:
    """What the page Train has beside what it learns from, which stands in a link wherever one of these does."""

    task: str = "induction"
    corpus: str | None = None
    """None until a text is asked for: then one that is on this machine."""
    shape: str = "quick"
    rung: str = "ladder-8-blocks"
    n_layers: int = 2
    n_heads: int = 4
    d_model: int = 64
    context: int = 32
    positions: str = "sinusoidal"
    norm: str = "pre"
    steps: int = 500
    snapshot: int | None = None
    """The step of a training that is looked at; None follows the newest."""


@dataclass
class Visitor(Training, Selection):
    """One visitor's choices. `None` stands for the default that the model or the text decides."""

    model: str = DEFAULT_MODEL
    prompt: str | None = None
    """None: the model's first example."""
    reads: str = "chat"
    """How a model that was tuned to answer reads the prompt: as a "chat", in its template, or as "plain" text."""
    changes: tuple[Change, ...] = ()
    """What is changed in the model; those that are off are among them."""
    scope: str = "prompt"
    question: str = "ablation"
    """What is asked on the page What if."""
    effect: str = "probability"
    """What ablating a part has its effect on: the "probability" or the "logit" of a token, or the text's "loss"."""
    token: int | None = None
    """That token; None: the likeliest next one."""
    other_prompt: str | None = None
    """A prompt beside the prompt; None: one that is suggested for it."""
    own_token: int | None = None
    """What is traced: the token that the prompt leads to; None, for either: the likeliest."""
    other_token: int | None = None
    """The one that the other prompt leads to."""
    ladder: str = "first"
    """Which one a prompt is put on."""
    beside: str = "prompts"
    other_model: str | None = None
    """The model beside the model; None: one that has something in common with it."""
    length: int = 64
    """Rows of the sinusoidal table."""
    width: int = 64
    base: float = 10000.0
    position: int = 5
    dimension: int = 4
    waves: tuple[int, ...] | None = None
    """The dimensions whose waves are drawn; None: a few that tell the story."""
    shift: int = 6
    filler: int = 3
    """Padding tokens after the prompt, on the page Masks."""
    masks_shown: int = 32
    """Tokens of its masks, from the end, if there are more."""
    positions_shown: int = 32
    """Tokens of its predictions."""
    batch: str | None = None
    """Prompts of unequal length, one a line; None: made from the model's examples."""
    batch_row: int = 0
    """The prompt of the batch whose masks are shown."""
    pad_side: str = "right"
    learn: str = "text"
    """What the page Train learns from: a task, a text that ships, or the visitor's own."""
    own_text: str = ""
    """A text that was pasted; not part of any link."""
    room: str = ""
    """The code of a room that is to be joined, as it was typed or as a link brought it."""
    lesson: str = ""
    """The lesson that is open on the page Learn; empty: the list of them."""
    lesson_step: int = 0
    answers: str = ""
    """What was answered in the lessons, if the visitor wants it in the link."""
    notices: list[str] = field(default_factory=list)
    """What was wrong in the link, to be said once."""


def fields(kind: type = Visitor) -> list[str]:
    """The names of the visitor's fields, or of those of one kind; notices left out."""
    return [entry.name for entry in dataclasses.fields(kind) if entry.name != "notices"]
