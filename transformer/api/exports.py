"""Exports a forward pass: its tensors as a file for Python, one tensor as CSV, or a view as an HTML page.

Asked for as in `tensors`. All are made from a pass of their own, and not cached.
"""

import math
from collections.abc import Callable
from typing import Any

from ..frontend import saved_recording
from ..frontend.saved_model import View, model_page, too_large
from ..frontend.saved_recording import INSIDE, attention_fits, inside_page, page_fit
from ..inference.attention_outline import names_around
from ..inference.inputs import inputs_of
from ..inference.pass_outline import TensorInfo, tensors_of
from ..inference.pass_recording import record_pass
from ..inference.pattern_pooling import LIMIT
from ..inference.recording import Recording, plain_array, record
from ..inference.tracing import trace_pass
from ..model.equations import LOGITS, PROBABILITIES
from ..model.registry import attention_modules
from . import tensors
from .csv_file import MOST_ROWS, csv_file
from .errors import ApiError, wrong
from .file_names import attachment, slug
from .open_models import OpenModel
from .outlines import whole_overview
from .pass_inputs import PassInputs
from .request_parameters import ExportQuery, check_size, kind_of, part_named
from .responses import RECORDING, Answer
from .tensors import about_pass, bytes_of_pass, infos_of, one_at_a_time

MOST_BYTES = 64_000_000
"""The largest file: its numbers are in memory twice while it is made, and the server keeps it until it is fetched."""


def too_much(inputs: PassInputs, scope: str | None) -> str | None:
    """Why a view's numbers don't fit into a file, and what would help, in sentences; None if they fit.

    scope: as in `file_of`; None for the whole pass.
    """
    model, lengths = inputs.model, (len(inputs.tokens), len(inputs.source))
    size = _size(model, *lengths, scope)
    if size <= MOST_BYTES:
        return None
    infos = infos_of(model.checkpoint.model.config, *lengths)
    problem = (
        f"All numbers of this view take {size / 1e6:,.0f} MB, and a file holds at most {MOST_BYTES / 1e6:,.0f} MB."
    )
    if scope is not None and scope in infos and infos[scope].kind == "parameter":
        return f"{problem} They are weights, and all in the model's own file, `model.safetensors`."
    ways = []
    if longest := _longest(model, *lengths, scope):
        ways.append("take a text of one token" if longest == 1 else f"take a text of at most {longest} tokens")
    if scope not in infos:
        ways.append("choose a part of the model, such as a sublayer or a tensor")
    return f"{problem} {' or '.join(ways).capitalize()}." if ways else problem


def _longest(model: OpenModel, tokens: int, source: int, scope: str | None) -> int:
    """The most tokens of a text whose view fits into a file; 0 if none does."""
    low, high = 0, tokens
    while low < high:
        middle = (low + high + 1) // 2
        fits = _size(model, middle, source, scope) <= MOST_BYTES
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def _size(model: OpenModel, tokens: int, source: int, scope: str | None) -> int:
    """The bytes of a view's numbers, for a text of so many tokens."""
    infos = tensors_of(model.checkpoint.model.config, tokens, source)
    return sum(
        math.prod(info.sizes) * (1 if name.endswith("hook_mask") else 4)
        for name, info in infos.items()
        if _is_in_view(name, info, scope)
    )


def file_of(inputs: PassInputs, scope: str) -> Recording:
    """The numbers of a view, for a file, named and laid out as the engine has them.

    scope: a tensor, or a module, whose points and parameters they are. Of the whole model, which is "",
    they are what its picture is drawn of: the residual stream and what is added to it, the attention weights, the
    logits and probabilities.
    Raises: ValueError, saying what would do, for a view of more than `MOST_BYTES`.
    """
    if problem := too_much(inputs, scope):
        raise ValueError(problem)
    checkpoint = inputs.model.checkpoint
    infos = infos_of(checkpoint.model.config, len(inputs.tokens), len(inputs.source))
    chosen = [name for name, info in infos.items() if _is_in_view(name, info, scope)]
    points = [name for name in chosen if infos[name].kind == "point"]
    with one_at_a_time:
        trace = trace_pass(
            checkpoint.model,
            inputs.tokens,
            inputs.source,
            names=points,
            interventions=inputs.interventions,
            outputs=not {LOGITS, PROBABILITIES}.isdisjoint(chosen),
        )
    arrays = {name: plain_array(trace.tensors[name]) for name in chosen}
    return Recording(arrays, about_pass(checkpoint, inputs.tokens, inputs.source))


def page_of(inputs: PassInputs, **options: Any) -> str:
    """A pass as an HTML page that needs no server. options: what else `inside_page` takes.

    Raises: ValueError for a pass that is too large.
    """
    with one_at_a_time:
        return inside_page(_whole_pass(inputs), offset=inputs.begin, **options).html


def _whole_pass(inputs: PassInputs) -> Recording:
    checkpoint = inputs.model.checkpoint
    return record_pass(
        checkpoint.model,
        inputs.tokens,
        inputs.source,
        labels=checkpoint.tokenizer.labels,
        interventions=inputs.interventions,
        mask_token_id=checkpoint.card.mask_token_id,
    )


def inside_view(inputs: PassInputs, *, title: str, **options: Any) -> str:
    """The page Inside as an HTML page that computes; of a model that is too large for that, as `page_of` makes it."""
    chosen = {name: options.get(name, value) for name, value in INSIDE.items()}
    if (page := _model_page(inputs, "inside", title=title, begin=inputs.begin, chosen=chosen)) is not None:
        return page
    return page_of(inputs, title=title, note=too_large(inputs.model.checkpoint.model) or "", **options)


def generation_page(inputs: PassInputs, *, title: str, **chosen: Any) -> str:
    """A model that writes, or fills masks, as an HTML page that computes. chosen: what is looked at first.

    Raises: ValueError where it is too large for a page.
    """
    if problem := too_large(inputs.model.checkpoint.model):
        raise ValueError(problem)
    if (page := _model_page(inputs, "generation", title=title, chosen=chosen)) is None:
        raise ValueError("This model has too many tokens for a page.")
    return page


def _model_page(inputs: PassInputs, view: View, **about: Any) -> str | None:
    model, tokens, source = inputs.passed
    page = model_page(model.checkpoint, view, tokens, source, interventions=inputs.changes, **about)
    return None if page is None else page.html


def _is_in_view(name: str, info: TensorInfo, scope: str | None) -> bool:
    if scope is None:
        return True
    if scope:
        return name == scope or name.startswith(f"{scope}.")
    return (
        info.kind == "output"
        or name.endswith("hook_pattern")
        or (info.kind == "point" and info.dims == ("pos", "d_model"))
    )


def whole_layer(inputs: PassInputs, kind: str, layer: int) -> Recording:
    """Every hook point of one attention, all heads, as `record` names them."""
    model, labels = inputs.model.checkpoint.model, inputs.model.checkpoint.tokenizer.labels
    module = attention_modules(model.config)[kind][layer]
    return record(
        model,
        inputs_of(model, inputs.tokens, inputs.source),
        lambda point: point.startswith(f"{module}."),
        labels={"text": labels(inputs.tokens), "source": labels(inputs.source)},
        interventions=inputs.interventions,
    )


def whole_attention(inputs: PassInputs, kind: str) -> Recording:
    """All that the picture of an attention is derived from, in every layer: for a page that has no server to ask.

    Weights are there for a short text only: of a long one they are most of the bytes, and follow from the rest.
    """
    model = inputs.model.checkpoint.model
    modules = attention_modules(model.config)[kind]
    around = [names_around(model.config, kind, layer) for layer in range(len(modules))]
    names = [name for names_around in around for name in names_around.values() if name]
    is_short = max(_lengths(inputs, kind)) <= LIMIT
    points = ("hook_z", "hook_result", "hook_pattern") if is_short else ("hook_z",)
    names += [f"{module}.{point}" for module in modules for point in points]
    parameters = [f"{module}.{each}" for module in modules for each in ("out.weight", "relative_bias.weight")]
    return record(
        model,
        inputs_of(model, inputs.tokens, inputs.source),
        names,
        interventions=inputs.interventions,
        parameters=[name for name in parameters if name in infos_of(model.config, 1, 1)],
    )


def _lengths(inputs: PassInputs, kind: str) -> tuple[int, int]:
    """How many queries and keys an attention has."""
    tokens, source = len(inputs.tokens), len(inputs.source)
    return source if kind == "encoder" else tokens, tokens if kind in ("self", "decoder") else source


def export(query: ExportQuery, inputs: PassInputs) -> Callable[[], Answer]:
    """A function that makes the file of `/export`. Raises: ApiError for what there isn't, or is too much for one."""
    checkpoint = inputs.model.checkpoint
    title = slug(checkpoint.card.title)
    if query.format == "csv":
        return _table(query, inputs, title)
    if query.format == "html":
        return _page(query, inputs, f"{title}-{query.view}")
    name = query.name
    infos = infos_of(checkpoint.model.config, len(inputs.tokens), len(inputs.source))
    if name is not None and not any(other == name or other.startswith(f"{name}.") for other in infos):
        raise wrong("name", f"this model has no {name[:60]!r}; it has {', '.join(list(infos)[:3])} and so on")
    if problem := too_much(inputs, name):
        raise ApiError(413, problem, "name")

    def numbers() -> Answer:
        if name is not None:
            saved = file_of(inputs, name)
        else:
            with one_at_a_time:
                saved = _whole_pass(inputs)
        return Answer(RECORDING, saved.to_bytes(), headers=attachment(f"{title}-{slug(name or 'pass')}.safetensors"))

    return numbers


def _table(query: ExportQuery, inputs: PassInputs, title: str) -> Callable[[], Answer]:
    if query.name is None:
        raise ApiError(400, "A table is of one tensor, or of a part of one; give its name.", "name")
    part = part_named(query.name, "name", inputs)
    if part.cells > MOST_ROWS:
        raise ApiError(
            413,
            f"This table would have {part.cells:,} rows, and one has at most {MOST_ROWS:,}; take a "
            "part of the tensor, such as [0:8].",
            "name",
        )
    check_size([part], "name")
    tokenizer = inputs.model.checkpoint.tokenizer
    texts = {"text": tokenizer.labels(inputs.tokens), "source": tokenizer.labels(inputs.source)}

    def table() -> Answer:
        values = tensors.tensors(*inputs.passed, [part], inputs.interventions)[part.text]
        body = csv_file(part, values, texts, tokenizer.labels)
        return Answer("text/csv; charset=utf-8", body, headers=attachment(f"{title}-{slug(part.text)}.csv"))

    return table


def _page(query: ExportQuery, inputs: PassInputs, title: str) -> Callable[[], Answer]:
    config, lengths = inputs.model.checkpoint.model.config, (len(inputs.tokens), len(inputs.source))
    kind = kind_of(query, inputs.model) if query.view == "attention" else None
    if query.view == "generation":
        if problem := too_large(inputs.model.checkpoint.model):
            raise ApiError(413, problem, "view")
        fits = True
    elif kind is None:
        fits = bytes_of_pass(config, *lengths) <= tensors.MOST_RECORDED and page_fit(config, *lengths) is not None
    else:
        fits = attention_fits(config, kind, *lengths)
    if not fits:
        raise ApiError(
            413, "All numbers of this pass are too many for one page; take a shorter text, or a smaller model.", "view"
        )

    def make() -> Answer:
        if query.view == "generation":
            page = generation_page(inputs, title=title)
        elif kind is None:
            page = inside_view(inputs, title=title)
        else:
            page = attention_page(inputs, kind, title=title)
        return Answer("text/html; charset=utf-8", page.encode(), headers=attachment(f"{title}.html"))

    return make


def attention_page(inputs: PassInputs, kind: str, **options: Any) -> str:
    """An attention as an HTML page that needs no server, and that computes unless the model is too large for one.

    options: what else `saved_recording.attention_page` takes.
    """
    about = {name: options[name] for name in ("title", "next") if name in options}
    chosen = {name: value for name, value in options.items() if name not in about}
    page = _model_page(inputs, "attention", begin=inputs.begin, kind=kind, chosen=chosen, **about)
    if page is not None:
        return page
    note = too_large(inputs.model.checkpoint.model) or ""
    read = inputs.tokens, inputs.source, kind, inputs.interventions
    outlined = whole_overview(inputs.model.checkpoint, *read)
    return saved_recording.attention_page(
        outlined, whole_attention(inputs, kind), offsets=inputs.offsets(kind), note=note, **options
    ).html
