"""The parameters of every API address as Pydantic models, with their limits and their validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from ..data.chat import Chat
from ..data.tasks import TASKS
from ..data.tokenizers import UnknownTokenError
from ..inference.context_windows import in_window
from ..inference.intervention_codes import from_code
from ..inference.interventions import Intervention
from ..inference.sampling import Sampling
from ..model.registry import attention_modules
from . import tensors
from .errors import ApiError, wrong
from .open_models import OpenModel

MOST_CHANGES = 24
LONGEST_CHANGES = 6_000
LONGEST_TEXT = 20_000
MOST_NAMES = 64
MOST_CELLS = 8_000_000
"""Numbers of one answer, which are 32 MB."""
MOST_NEW_TOKENS = 500
BETWEEN = "!"
"""Between two changes."""

Ids = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,9}(,[0-9]{1,9})*$", max_length=60_000)]
Index = Annotated[int, Field(ge=0, le=10**9)]


class ModelQuery(BaseModel):
    """Which model."""

    model_config = ConfigDict(extra="forbid", regex_engine="python-re")

    model: Annotated[
        str,
        Field(
            min_length=1,
            max_length=200,
            description=(
                "A name that /api/models lists; “own” for the model whose token the header HeadsUp-Model holds."
            ),
        ),
    ]
    version: Annotated[
        str | None,
        Field(
            max_length=80,
            description=(
                "Its version, as /api/models says it. An answer of a named version can be cached for good; without it "
                "the present one answers."
            ),
        ),
    ] = None


class PassQuery(ModelQuery):
    """Which forward pass: a model, what it reads, and what is changed in it."""

    text: Annotated[
        str | None,
        Field(
            max_length=LONGEST_TEXT,
            description=("What the model reads: a decoder continues it, an encoder–decoder has it for its source."),
        ),
    ] = None
    reads: Annotated[
        Literal["plain", "chat"],
        Field(description=("Whether a model that was tuned to answer reads the text in its chat template.")),
    ] = "plain"
    tokens: Annotated[
        Ids | None, Field(description=("Instead of the text: ids of what a decoder has before it, such as 31,5,7."))
    ] = None
    source: Annotated[Ids | None, Field(description="With tokens: ids of what an encoder reads.")] = None
    changes: Annotated[
        str,
        Field(
            max_length=LONGEST_CHANGES,
            description=(
                "Interventions, as `to_code` writes them, with ! between them: scale~blocks.0.attn.hook_z~3~~0.0 "
                "ablates head 3 of block 0."
            ),
        ),
    ] = ""
    begin: Annotated[
        Index, Field(description=("The first token's position in the whole text; changes count from the text's start."))
    ] = 0


class OverviewQuery(PassQuery):
    """Which attention of a pass."""

    kind: Annotated[
        Literal["self", "encoder", "decoder", "cross"] | None,
        Field(description=("The kind of attention; without it the model's own, or its cross-attention.")),
    ] = None


class TensorsQuery(PassQuery):
    """Which tensors of a pass."""

    names: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=300)]],
        Field(
            min_length=1,
            max_length=MOST_NAMES,
            description=(
                "Hook points, parameters, logits or probabilities, each perhaps with an index as in NumPy: "
                "blocks.2.attn.hook_q[:, 3]. May be given several times."
            ),
        ),
    ]


class LensQuery(PassQuery):
    """Which position the logit lens reads."""

    position: Annotated[Index, Field(description="Of a token that was read, from 0.")]


class AttributionQuery(LensQuery):
    """Whose logit is taken apart."""

    token: Annotated[Index, Field(description="The id of a token that may come after that position.")]


class CircuitQuery(ModelQuery):
    """Which circuit of a head."""

    kind: Annotated[Literal["qk", "ov"], Field(description="What makes it look, or what it then says.")]
    attention: Annotated[str, Field(max_length=100, description="Such as blocks.0.attn.")]
    head: Index
    tokens: Annotated[Ids | None, Field(description=("Ids that are among those shown of a large vocabulary."))] = None


class AblationQuery(PassQuery):
    """What is compared with each part and without it, besides the loss of the text."""

    position: Annotated[
        Index | None, Field(description=("Of the token after which logits are compared; without it the last."))
    ] = None
    token: Annotated[
        Index | None, Field(description=("The id of the token whose logit is compared; without it the likeliest."))
    ] = None


class PatchingQuery(PassQuery):
    """Two texts of one length; the one of the address is the one that is patched."""

    clean_text: Annotated[str | None, Field(max_length=LONGEST_TEXT, description="The text that is put in.")] = None
    clean_tokens: Annotated[
        Ids | None,
        Field(description=("Instead of it: ids of what a decoder has before it; else the same as in the other.")),
    ] = None
    clean_source: Annotated[Ids | None, Field(description="And of what an encoder reads.")] = None
    stack: Annotated[
        Literal["self", "encoder", "decoder"] | None,
        Field(description=("Where it is patched; without it in the encoder of a model that has one.")),
    ] = None
    answer: Annotated[Index, Field(description="The id of the token that is right on the clean text.")]
    against: Annotated[Index, Field(description="The id of the token that is right on the other.")]


class SamplingQuery(PassQuery):
    """How a token is drawn."""

    temperature: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False, description="0 is greedy.")] = 1.0
    top_k: Annotated[int | None, Field(ge=1, le=10**6)] = None
    top_p: Annotated[float | None, Field(gt=0, le=1)] = None
    seed: Annotated[
        int | None,
        Field(
            ge=0,
            lt=2**63,
            description=(
                "The random number of each position follows from the seed and the position; without a seed it "
                "is different each time."
            ),
        ),
    ] = None

    def sampling(self) -> Sampling:
        """As the engine takes it."""
        return Sampling(self.temperature, self.top_k, self.top_p, self.seed)


class GenerateQuery(SamplingQuery):
    """How a text is continued."""

    max_new_tokens: Annotated[int, Field(ge=1, le=MOST_NEW_TOKENS)] = 100
    attention: Annotated[
        str | None,
        Field(
            max_length=100,
            description=("An attention, such as blocks.2.attn: each token comes with its head's newest row."),
        ),
    ] = None
    head: Index = 0


class ScoresQuery(SamplingQuery):
    """From which position of a text on."""

    first: Annotated[
        int,
        Field(
            ge=1,
            le=10**9,
            description=(
                "The first position that is reported; the one after the text's last token is the next token's."
            ),
        ),
    ] = 1


class RowsQuery(PassQuery):
    """Whose rows, of which positions."""

    attention: Annotated[str, Field(max_length=100, description="An attention of the decoder: blocks.2.attn.")]
    head: Index = 0
    first: Annotated[int, Field(ge=1, le=10**9)]
    last: Annotated[int, Field(ge=1, le=10**9, description="The last position, which may be the one after the text.")]


class ExportQuery(OverviewQuery):
    """What is saved, and in which form."""

    format: Literal["html", "csv", "safetensors"]
    view: Annotated[Literal["inside", "attention"], Field(description="Of a page: what it shows.")] = "inside"
    name: Annotated[
        str | None,
        Field(
            max_length=300,
            description=(
                "Of CSV: the tensor, or the part of one; of safetensors: a module or tensor, all if it is left out."
            ),
        ),
    ] = None


@dataclass(frozen=True)
class PassInputs:
    """What a pass reads, checked against its model."""

    model: OpenModel
    tokens: tuple[int, ...]
    source: tuple[int, ...]
    interventions: tuple[Intervention, ...]
    """As the pass takes them: their positions count from its first token."""
    changes: tuple[Intervention, ...]
    """As they were given: their positions count from the text's start."""


def inputs_of(query: PassQuery, model: OpenModel, *, fits: bool = True) -> PassInputs:
    """What a query means of a model. fits: whether the tokens have to fit the context length.

    Raises: ApiError, saying which parameter is wrong.
    """
    if (query.text is None) == (query.tokens is None):
        raise ApiError(400, "Give either text or tokens.", "text" if query.tokens is None else "tokens")
    tokens, source = ids_of(query.tokens), ids_of(query.source)
    if query.text is not None:
        if query.source is not None:
            raise wrong("source", "with a text, the text itself is the source")
        tokens = encoded(model, query.text, query.reads, "text")
        if model.checkpoint.model.config.architecture == "encoder-decoder":
            tokens, source = (model.checkpoint.card.start_token_id or 0,), tokens
    _check_pass(model, tokens, source, "tokens" if query.text is None else "text", fits=fits)
    changes = changes_of(query.changes, model)
    return PassInputs(model, tokens, source, in_window(changes, query.begin), changes)


def clean_inputs_of(query: PatchingQuery, found: PassInputs) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Tokens and source of the clean text, which is put into the other. Raises: as `inputs_of`."""
    if (query.clean_text is None) == (query.clean_tokens is None and query.clean_source is None):
        raise ApiError(400, "Give either clean_text, or clean_tokens or clean_source.", "clean_text")
    tokens, source = ids_of(query.clean_tokens) or found.tokens, ids_of(query.clean_source) or found.source
    if query.clean_text is not None:
        read = encoded(found.model, query.clean_text, query.reads, "clean_text")
        tokens, source = (found.tokens, read) if found.source else (read, ())
    parameter = "clean_tokens" if query.clean_text is None else "clean_text"
    _check_pass(found.model, tokens, source, parameter)
    for one, other in ((found.tokens, tokens), (found.source, source)):
        if len(one) != len(other):
            raise wrong(parameter, f"it has {len(other)} tokens and the other text {len(one)}; both must have as many")
    return tokens, source


def _check_pass(
    model: OpenModel, tokens: tuple[int, ...], source: tuple[int, ...], parameter: str, *, fits: bool = True
) -> None:
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


def check_position(position: int, found: PassInputs) -> None:
    """Raises: ApiError for a position that the text hasn't."""
    if position >= len(found.tokens):
        raise wrong("position", f"the text has {len(found.tokens)} tokens, from 0")


def part_named(name: str, parameter: str, found: PassInputs) -> tensors.Part:
    """The tensor of a name, or the part of it. Raises: ApiError for one that the pass hasn't."""
    infos = tensors.infos_of(found.model.checkpoint.model.config, len(found.tokens), len(found.source))
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


def encoded(model: OpenModel, text: str, reads: str, parameter: str) -> tuple[int, ...]:
    """A text's ids. Raises: ApiError for one that the model can't read."""
    card, tokenizer = model.checkpoint.card, model.checkpoint.tokenizer
    if card.task in TASKS and (problem := TASKS[card.task].problem(text)):
        raise wrong(parameter, problem)
    try:
        if reads == "chat" and card.chat is not None:
            return tuple(Chat(**card.chat).tokens(tokenizer, text))
        return tuple(tokenizer.encode(text))
    except UnknownTokenError as error:
        raise wrong(parameter, error) from None


def ids_of(written: str | None) -> tuple[int, ...]:
    """Ids as an address has them."""
    return tuple(map(int, written.split(","))) if written else ()


def changes_of(written: str, model: OpenModel) -> tuple[Intervention, ...]:
    """Interventions as an address has them. Raises: ApiError for what can't be done with this model."""
    codes = written.split(BETWEEN) if written else []
    if len(codes) > MOST_CHANGES:
        raise wrong("changes", f"there are {len(codes)}, and at most {MOST_CHANGES} can be made at once")
    found = []
    for code in codes:
        try:
            intervention = from_code(code)
            intervention.check(model.checkpoint.model.config)
        except (ValueError, OverflowError) as error:
            raise wrong("changes", f"{code[:60]!r}: {error}") from None
        found.append(intervention)
    return tuple(found)


def kind_of(query: OverviewQuery, model: OpenModel) -> str:
    """The kind of attention that is asked for. Raises: ApiError for one that the model hasn't."""
    kinds = attention_modules(model.checkpoint.model.config)
    kind = query.kind or next(reversed(kinds), None)
    if kind not in kinds:
        raise wrong("kind", f"this model has {', '.join(kinds) or 'no attention'}")
    return kind
