"""The parameters of every API address as Pydantic models, with their limits and their validation."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from ..data.chat import Chat
from ..data.tasks import TASKS
from ..inference.intervention_codes import from_code
from ..inference.intervention_kinds import MOST_CHANGES, MOST_CHARACTERS
from ..inference.sampling import Sampling
from ..model.registry import attention_modules
from . import tensors
from .errors import ApiError, wrong
from .open_models import OpenModel
from .pass_inputs import PassInputs
from .tensors import Interventions, Tokens

LONGEST_TEXT = 20_000
MOST_NAMES = 64
MOST_CELLS = 8_000_000
"""Numbers of one answer, which are 32 MB."""
MOST_ORDERS = 16
MOST_NEW_TOKENS = 500
BETWEEN = "!"
"""Separates two changes."""

Ids = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,9}(,[0-9]{1,9})*$", max_length=60_000)]
Index = Annotated[int, Field(ge=0, le=10**9)]


class ModelQuery(BaseModel):
    """Which model."""

    model_config = ConfigDict(extra="forbid", regex_engine="python-re", use_attribute_docstrings=True)

    model: Annotated[str, Field(min_length=1, max_length=200)]
    """A name that /api/models lists; “own” for the model whose token the header HeadsUp-Model holds."""
    version: Annotated[str | None, Field(max_length=80)] = None
    """Its version, as /api/models says it. An answer of a named version can be cached for good; without it
    the present one answers."""
    new_words: Annotated[list[Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]], Field(max_length=64)] = []
    """Words that the vocabulary lacks, in the order in which they take the places that it keeps for new words. What is
    asked besides them, such as a text, may have further ones."""

    def named(self, model: OpenModel) -> OpenModel:
        """The model with these new words. Raises: ApiError for what isn't one."""
        if not self.new_words:
            return model
        named = model.with_new_words(self.new_words)
        if (read := named.checkpoint.tokenizer.new_words) != tuple(self.new_words):
            listed = ", ".join(map(repr, read)) or "none"
            raise wrong("new_words", f"of these, this model reads as new, each once: {listed}")
        return named


class PassQuery(ModelQuery):
    """Which forward pass: a model, what it reads, and what is changed in it."""

    text: Annotated[str | None, Field(max_length=LONGEST_TEXT)] = None
    """What the model reads: a decoder continues it, an encoder–decoder has it for its source."""
    reads: Literal["plain", "chat"] = "plain"
    """Whether a model that was tuned to answer reads the text in its chat template."""
    tokens: Ids | None = None
    """Instead of the text: ids of what a decoder has before it, such as 31,5,7."""
    source: Ids | None = None
    """With tokens: ids of what an encoder reads."""
    changes: Annotated[str, Field(max_length=MOST_CHARACTERS)] = ""
    """Interventions, as `to_code` writes them, with ! between them: scale~blocks.0.attn.hook_z~3~~0.0 ablates
    head 3 of block 0."""
    begin: Index = 0
    """The first token's position in the whole text; changes count from the text's start."""

    @property
    def texts(self) -> list[str]:
        """All that is to be read, in order."""
        return [self.text] if self.text is not None else []


class OverviewQuery(PassQuery):
    """Which attention of a pass."""

    kind: Literal["self", "encoder", "decoder", "cross"] | None = None
    """The kind of attention; without it the model's own, or its cross-attention."""


class TensorsQuery(PassQuery):
    """Which tensors of a pass."""

    names: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=300)]],
        Field(min_length=1, max_length=MOST_NAMES),
    ]
    """Hook points, parameters, logits or probabilities, each perhaps with an index as in NumPy:
    blocks.2.attn.hook_q[:, 3] or logits[-1]. May be given several times."""


class PositionQuery(PassQuery):
    """Which position is read."""

    position: Index
    """The position of a token of the text, from 0."""


class LensQuery(PositionQuery):
    """What the logit lens is asked for."""

    of: Ids | None = None
    """Tokens whose probabilities are told, too."""


class AttributionQuery(PositionQuery):
    """Which logit is split into shares."""

    token: Index
    """The id of a token that may come after that position."""


class CircuitQuery(ModelQuery):
    """Which circuit of a head."""

    kind: Literal["qk", "ov"]
    """qk: which tokens it looks at; ov: what it writes when it looks at one."""
    attention: Annotated[str, Field(max_length=100)]
    """The attention, such as blocks.0.attn."""
    head: Index
    tokens: Ids | None = None
    """Ids that are among those shown of a large vocabulary."""


class AblationQuery(PassQuery):
    """Which logit is compared with each part and without it, besides the loss of the text."""

    position: Index | None = None
    """The position whose logits are compared; by default the last one, or an encoder's first mask."""
    token: Index | None = None
    """The id of the token whose logit is compared; without it the likeliest."""


class PatchingQuery(PassQuery):
    """Two texts of one length; the one of the address is the one that is patched."""

    clean_text: Annotated[str | None, Field(max_length=LONGEST_TEXT)] = None
    """The text that is put in."""
    clean_tokens: Ids | None = None
    """Instead of it: ids of what a decoder has before it; else the same as in the other."""
    clean_source: Ids | None = None
    """And of what an encoder reads."""
    stack: Literal["self", "encoder", "decoder"] | None = None
    """The stack that is patched; by default the encoder of a model that has one."""
    answer: Index
    """The id of the token that is right on the clean text."""
    against: Index
    """The id of the token that is right on the other."""

    @property
    def texts(self) -> list[str]:
        return [*super().texts, *([self.clean_text] if self.clean_text is not None else [])]


class SamplingQuery(PassQuery):
    """How a token is drawn."""

    temperature: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 1.0
    """0 is greedy."""
    top_k: Annotated[int | None, Field(ge=1, le=10**6)] = None
    top_p: Annotated[float | None, Field(gt=0, le=1)] = None
    seed: Annotated[int | None, Field(ge=0, lt=2**63)] = None
    """The random number of each position follows from the seed and the position; without a seed it is different
    each time."""

    def sampling(self) -> Sampling:
        """As the engine takes it."""
        return Sampling(self.temperature, self.top_k, self.top_p, self.seed)


class GenerateQuery(SamplingQuery):
    """How a text is continued."""

    max_new_tokens: Annotated[int, Field(ge=1, le=MOST_NEW_TOKENS)] = 100
    attention: Annotated[str | None, Field(max_length=100)] = None
    """An attention, such as blocks.2.attn: each token comes with its head's newest row."""
    head: Index = 0


class ScoresQuery(SamplingQuery):
    """From which position of a text on."""

    first: Annotated[int, Field(ge=1, le=10**9)] = 1
    """The first position that is reported; the one after the text's last token is the next token's."""


class PredictionsQuery(PassQuery):
    """At which positions."""

    first: Index = 0
    last: Index | None = None
    """Without it, the last."""
    orders: Annotated[list[Ids], Field(max_length=MOST_ORDERS)] = []
    """The same tokens in other orders (of an encoder–decoder, its source's), each read by itself. May be given several
    times; then `first` and `last` are one position."""


class RowsQuery(PassQuery):
    """Which rows of which head."""

    attention: Annotated[str, Field(max_length=100)]
    """An attention of the decoder: blocks.2.attn."""
    head: Index = 0
    first: Annotated[int, Field(ge=1, le=10**9)]
    last: Annotated[int, Field(ge=1, le=10**9)]
    """The last position, which may be the one after the text."""


class ExportQuery(OverviewQuery):
    """What is exported, and in which format."""

    format: Literal["html", "csv", "safetensors"]
    view: Literal["inside", "attention", "generation"] = "inside"
    """The view that an HTML page shows."""
    name: Annotated[str | None, Field(max_length=300)] = None
    """For CSV the tensor, or the part of one; for safetensors a module or tensor, by default all."""


def inputs_of(query: PassQuery, model: OpenModel, *, fits: bool = True) -> PassInputs:
    """The inputs that a query asks for. fits: whether the tokens have to fit the context length.

    Raises: ApiError, saying which parameter is wrong.
    """
    if (query.text is None) == (query.tokens is None):
        raise ApiError(400, "Give either text or tokens.", "text" if query.tokens is None else "tokens")
    tokens, source = ids_of(query.tokens), ids_of(query.source)
    model = model.with_new_words([*query.new_words, *query.texts])
    if query.text is not None:
        if query.source is not None:
            raise wrong("source", "with a text, the text itself is the source")
        tokens = encoded(model, query.text, query.reads, "text")
        if model.checkpoint.model.config.architecture == "encoder-decoder":
            tokens, source = model.checkpoint.card.start_tokens, tokens
    _check_pass(model, tokens, source, "tokens" if query.text is None else "text", fits=fits)
    return PassInputs(model, tokens, source, interventions_of(query.changes, model), query.begin)


def clean_inputs_of(query: PatchingQuery, inputs: PassInputs) -> tuple[Tokens, Tokens]:
    """Tokens and source of the clean text, which is put into the other. Raises: as `inputs_of`."""
    if (query.clean_text is None) == (query.clean_tokens is None and query.clean_source is None):
        raise ApiError(400, "Give either clean_text, or clean_tokens or clean_source.", "clean_text")
    tokens, source = ids_of(query.clean_tokens) or inputs.tokens, ids_of(query.clean_source) or inputs.source
    if query.clean_text is not None:
        read = encoded(inputs.model, query.clean_text, query.reads, "clean_text")
        tokens, source = (inputs.tokens, read) if inputs.source else (read, ())
    parameter = "clean_tokens" if query.clean_text is None else "clean_text"
    _check_pass(inputs.model, tokens, source, parameter)
    for one, other in ((inputs.tokens, tokens), (inputs.source, source)):
        if len(one) != len(other):
            raise wrong(parameter, f"it has {len(other)} tokens and the other text {len(one)}; both must have as many")
    return tokens, source


def orders_of(query: PredictionsQuery, inputs: PassInputs) -> list[tuple[Tokens, Tokens]]:
    """Tokens and source of a text, then of its other orders. Raises: ApiError for one of other tokens."""
    texts = [(inputs.tokens, inputs.source)]
    for order in map(ids_of, query.orders):
        if sorted(order) != sorted(inputs.source or inputs.tokens):
            raise wrong("orders", "each has the tokens of the text, in another order")
        texts.append((inputs.tokens, order) if inputs.source else (order, ()))
    return texts


def _check_pass(model: OpenModel, tokens: Tokens, source: Tokens, parameter: str, *, fits: bool = True) -> None:
    """Raises: ApiError for what a model can't read. parameter: where it comes from."""
    config = model.checkpoint.model.config
    of_source = parameter if parameter.endswith("text") else parameter.replace("tokens", "source")
    if not tokens or (parameter.endswith("text") and config.architecture == "encoder-decoder" and not source):
        raise wrong(parameter, "it is empty, and a model needs at least one token")
    if (config.architecture == "encoder-decoder") != bool(source):
        raise wrong(of_source, "this model has no encoder" if source else "this model's encoder needs a source")
    for ids, where in ((tokens, parameter), (source, of_source)):
        if ids and max(ids) >= config.vocab_size:
            raise wrong(where, f"{max(ids)} is not in this model's vocabulary of {config.vocab_size}")
        if len(ids) > config.context_length and (fits or ids is source):
            raise wrong(where, f"it has {len(ids)} tokens, and this model reads at most {config.context_length}")


def check_token(parameter: str, token: int, model: OpenModel) -> None:
    """Raises: ApiError for an id that a model doesn't know."""
    if token >= model.checkpoint.model.config.vocab_size:
        raise wrong(parameter, "it is not in this model's vocabulary")


def check_position(position: int, inputs: PassInputs) -> None:
    """Raises: ApiError for a position that the text hasn't."""
    if position >= len(inputs.tokens):
        raise wrong("position", f"the text has {len(inputs.tokens)} tokens, from 0")


def part_named(name: str, parameter: str, inputs: PassInputs) -> tensors.Part:
    """The tensor of a name, or the part of it. Raises: ApiError for one that the pass hasn't."""
    infos = tensors.infos_of(inputs.model.checkpoint.model.config, len(inputs.tokens), len(inputs.source))
    try:
        return tensors.part_of(name, infos)
    except ValueError as error:
        raise wrong(parameter, error) from None


def check_size(parts: Sequence[tensors.Part], parameter: str) -> None:
    """Raises: ApiError for parts that are too much for one answer."""
    if (cells := sum(part.cells for part in parts)) > MOST_CELLS:
        raise ApiError(
            413,
            f"These tensors have {cells:,} numbers, and one answer holds at most {MOST_CELLS:,}; ask "
            "for parts of them, such as [0:8].",
            parameter,
        )
    if (size := tensors.bytes_recorded(parts)) > tensors.MOST_RECORDED:
        raise ApiError(
            413,
            f"These parts are cut from tensors of {size / 1e6:,.0f} MB, and one answer may take "
            f"{tensors.MOST_RECORDED / 1e6:,.0f} MB; ask for fewer at once, or of a shorter text.",
            parameter,
        )


def encoded(model: OpenModel, text: str, reads: str, parameter: str) -> Tokens:
    """A text's ids. Raises: ApiError for one that the model can't read."""
    card, tokenizer = model.checkpoint.card, model.checkpoint.tokenizer
    if card.task in TASKS and (problem := TASKS[card.task].problem(text)):
        raise wrong(parameter, problem)
    try:
        if reads == "chat" and card.chat is not None:
            return tuple(Chat(**card.chat).tokens(tokenizer, text))
        return tuple(tokenizer.encode(text))
    except ValueError as error:  # pieces that it doesn't know, or what its tokenizer fails on
        raise wrong(parameter, error) from None


def ids_of(written: str | None) -> Tokens:
    """Ids as an address has them."""
    return tuple(map(int, written.split(","))) if written else ()


def interventions_of(written: str, model: OpenModel) -> Interventions:
    """Interventions as an address has them. Raises: ApiError for what can't be done with this model."""
    codes = written.split(BETWEEN) if written else []
    if len(codes) > MOST_CHANGES:
        raise wrong("changes", f"there are {len(codes)}, and at most {MOST_CHANGES} can be made at once")
    interventions = []
    for code in codes:
        try:
            intervention = from_code(code)
            intervention.check(model.checkpoint.model.config)
        except (ValueError, OverflowError) as error:
            raise wrong("changes", f"{code[:60]!r}: {error}") from None
        interventions.append(intervention)
    return tuple(interventions)


def kind_of(query: OverviewQuery, model: OpenModel) -> str:
    """The kind of attention that is asked for. Raises: ApiError for one that the model hasn't."""
    kinds = attention_modules(model.checkpoint.model.config)
    kind = query.kind or next(reversed(kinds), None)
    if kind not in kinds:
        raise wrong("kind", f"this model has {', '.join(kinds) or 'no attention'}")
    return kind
