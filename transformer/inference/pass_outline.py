"""The outline of a forward pass: statistics and thumbnails of every tensor, small enough to send at once.

It is made from a kept pass, or tensor by tensor while a model reads a text too long to keep.
Shapes: pos, query, key, head, d_model, vocab; depth counts the points where the residual stream is read: before the
first block, and after each. There is no batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from ..choice_checks import check_index
from ..config import ModelConfig
from ..hooks import HookPoint
from ..model.equations import LOGITS, PROBABILITIES, UNCAPPED_LOGITS, equations, equations_json
from ..model.models import Model
from ..model.parameters import parameter_meaning
from ..model.registry import attention_modules, hook_points
from .analysis import check_logits
from .circuits import circuits_of
from .inputs import inputs_of, parameters_of, predicted_position
from .interventions import Intervention, hooks_of
from .logits import logits_in_pieces, probabilities_of
from .overwritten_values import overwritten_records
from .pattern_pooling import pool, quantise
from .recording import Recording, rounding_of
from .residual_stream import LogitLensSummary, logit_lens, logit_lens_summary, stream_points
from .tensor_statistics import Statistics, Summary, statistics, strip
from .tracing import Trace, Traced

LIKELIEST = 3
"""Tokens to name in each position's prediction."""


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of a pass, or a parameter of its model."""

    name: str
    kind: str
    """"point", "output" or "parameter"."""
    meaning: str
    formula: str
    dims: tuple[str, ...]
    """Dimensions as the equations read it: a parameter with several matrices in it is split into them."""
    sizes: tuple[int, ...]


def tensors_of(config: ModelConfig, tokens: int, source: int = 0) -> dict[str, TensorInfo]:
    """Every tensor of a pass by name, in its order, and then the parameters. tokens, source: their numbers."""
    table, points = equations(config), hook_points(config)
    unembedding = "x · W_U + b_U" if config.unembed_bias else "x · W_U"
    about = {name: ("point", point.meaning, point.formula) for name, point in points.items()}
    where = "as the next" if config.is_causal else "at this position"
    about[LOGITS] = ("output", f"The score of each token {where}, before the softmax.", unembedding)
    about[PROBABILITIES] = ("output", f"The probability of each token {where}.", "exp(logit_t) / Σ_t exp(logit_t)")
    dims = {name: points[name].shape if name in points else table[name].dims for name in table}
    for equation in table.values():
        for operand in equation.sources:
            if operand.name not in table and operand.name not in about:
                about[operand.name] = ("parameter", parameter_meaning(operand.name), "")
                dims[operand.name] = operand.dims
    infos = {}
    for name, (kind, meaning, formula) in about.items():
        named = tuple(dim for dim in dims[name] if dim != "batch")
        sizes = _sizes(config, name, kind, tokens, source)
        infos[name] = TensorInfo(name, kind, meaning, formula, named, tuple(sizes[dim] for dim in named))
    return infos


def array_of(trace: Trace, info: TensorInfo) -> np.ndarray:
    """A tensor of a pass in its dimensions, float32; truth values as bytes. The array shares the tensor's memory."""
    return _as_array(trace.tensors[info.name].detach(), info)


def _as_array(tensor: Tensor, info: TensorInfo) -> np.ndarray:
    tensor = tensor.reshape(info.sizes)
    return (tensor.to(torch.uint8) if tensor.dtype == torch.bool else tensor.float()).numpy()


def outline(trace: Trace, mask_token_id: int | None = None) -> Recording:
    """The data for the picture of a whole pass. mask_token_id: the token that an encoder fills in.

    Tensors: `statistics` (tensor, 4), mean, spread, smallest and largest finite value, in the order of the metadata's
    `tensors`; `strip.NAME` (pos, cell) of each point that is as wide as the stream, as `strip` makes them;
    `arcs.MODULE` (head, query, key) of each attention, as `pool` and `quantise` make them; `next` (pos, 3), the
    likeliest tokens, and `next.probability`; `lens` (depth, pos), the likeliest token at each depth, and
    `lens.probability`; `lens.right`, the probability of the text's next token, or for an encoder of the token at the
    position itself, NaN if the text has none, and `lens.rank`, its rank, 0 if it has none.
    Metadata: `config`; `rounding`, from `rounding_of` for the model's type of numbers; `tensors`, the fields of
    `TensorInfo`; `equations`; `stacks`, the sides of the model; `strip_limits` by name; `ids` of text and source;
    `predicted_position`, from the function; `circuits`, the kinds of each attention's heads; `changed`, the fields of
    `overwritten_values`.
    """
    sketch = _Sketch(trace.config, trace.tokens, trace.source, trace.tensors["unembed.weight"].dtype, mask_token_id)
    for name in sketch.infos:
        sketch.see(name, trace.tensors[name].detach())
    probabilities = trace.tensors[PROBABILITIES]
    order = _likeliest(probabilities)
    lens = logit_lens_summary(trace, _right_tokens(trace.config, trace.tokens))
    return sketch.recording(trace.interventions, order, probabilities.gather(-1, order), lens)


def outline_of_text(
    model: Model,
    tokens: Sequence[int],
    source: Sequence[int] = (),
    interventions: Sequence[Intervention] = (),
    *,
    of_parameters: Mapping[str, Statistics] | None = None,
    read: int | None = None,
    mask_token_id: int | None = None,
) -> Recording:
    """The same as `outline`, made while the model reads the text, keeping no tensor but the stream.

    of_parameters: the result of `statistics_of` for the model's parameters, if known. read: how many of the last
    positions the logit lens reads; at others `lens` is −1, `lens.rank` 0, and its probabilities are NaN.
    """
    text, origin = torch.tensor(list(tokens)), torch.tensor(list(source))
    sketch = _Sketch(model.config, text, origin, model.W_U.dtype, mask_token_id)
    sketch.statistics |= statistics_of(model) if of_parameters is None else of_parameters
    prefix = "decoder." if len(origin) else ""
    of_stream = {name for depth in stream_points(model.config, prefix) for name in depth}
    kept = {}

    def see(tensor: Tensor, hook: HookPoint) -> None:
        sketch.see(hook.name, tensor.cpu())
        if hook.name in of_stream:
            kept[hook.name] = tensor[0].cpu()

    with torch.no_grad(), model.hooked([*hooks_of(interventions, model), (lambda name: True, see)]):
        stream = model.stream(*inputs_of(model, tokens, source))[0]
    likeliest, probability = _next_of(model, stream, sketch)
    trace = Trace(model.config, text, origin, {**parameters_of(model), **kept})
    lens = logit_lens_summary(trace, _right_tokens(model.config, text), read)
    return sketch.recording(interventions, likeliest, probability, lens)


def statistics_of(model: Model) -> dict[str, Statistics]:
    """The `statistics` of each parameter that equations read, by name."""
    parameters = parameters_of(model)
    names = [name for name, info in tensors_of(model.config, 1, 1).items() if info.kind == "parameter"]
    return {name: statistics(parameters[name].float().numpy()) for name in names}


def lens_at(
    model: Model,
    tokens: Sequence[int],
    source: Sequence[int],
    position: int,
    interventions: Sequence[Intervention] = (),
    mask_token_id: int | None = None,
    of: Sequence[int] = (),
) -> dict[str, np.ndarray]:
    """The logit lens at one position, as in `outline`: `lens`, `lens.probability`, `lens.right` and `lens.rank`,
    (depth, 1) each. of: tokens whose probabilities are wanted, too; then `lens.of` has them, (depth, token)."""
    config = model.config
    check_index("position", position, len(tokens))
    wanted = {name for depth in stream_points(config, "decoder." if len(source) else "") for name in depth}
    inputs, hooks = inputs_of(model, tokens, source), hooks_of(interventions, model)
    with torch.no_grad():
        kept = model.run_until_recorded(*inputs, names_filter=wanted, fwd_hooks=hooks)
    here = {name: tensor[0, position : position + 1].cpu() for name, tensor in kept.items()}
    text, at = torch.tensor(list(tokens)), slice(position, position + 1)
    trace = Trace(config, text[at], torch.tensor(list(source)), {**parameters_of(model), **here})
    lens = logit_lens_summary(trace, _right_tokens(config, text)[at])
    arrays = _lens_arrays(lens, _has_right(config, text, mask_token_id)[at])
    if of:
        arrays["lens.of"] = logit_lens(trace).logits[:, 0].double().softmax(-1)[:, list(of)].numpy()
    return arrays


@dataclass
class _Sketch:
    """Collects an outline tensor by tensor."""

    config: ModelConfig
    tokens: Tensor
    source: Tensor
    dtype: torch.dtype
    mask_token_id: int | None
    statistics: Traced[Statistics] = field(default_factory=Traced)
    strips: Traced[tuple[np.ndarray, float]] = field(default_factory=Traced)
    arcs: Traced[np.ndarray] = field(default_factory=Traced)

    def __post_init__(self) -> None:
        self.infos = tensors_of(self.config, len(self.tokens), len(self.source))
        self._masks: dict[str, np.ndarray] = {}

    def see(self, name: str, tensor: Tensor) -> None:
        """Add a tensor's part of the outline; an attention's mask comes before its pattern."""
        info = self.infos[name]
        array = _as_array(tensor, info)
        self.statistics[name] = statistics(array)
        if info.kind == "point" and info.dims == ("pos", "d_model"):
            self.strips[name] = strip(array)
        module, _, point = name.rpartition(".")
        if point == "hook_mask":
            self._masks[module] = array
        elif point == "hook_pattern":
            self.arcs[module] = quantise(*pool(array, self._masks.pop(module) == 0))

    def recording(
        self, interventions: Sequence[Intervention], likeliest: Tensor, probability: Tensor, lens: LogitLensSummary
    ) -> Recording:
        """The outline. likeliest: (pos, LIKELIEST), tokens; probability: theirs."""
        config, infos = self.config, self.infos
        modules = [module for of_kind in attention_modules(config).values() for module in of_kind]
        return Recording(
            {
                "statistics": np.array([self.statistics[name] for name in infos], dtype=np.float32),
                **{f"strip.{name}": self.strips[name][0] for name in infos if name in self.strips},
                **{f"arcs.{module}": self.arcs[module] for module in modules},
                "next": likeliest.int().numpy(),
                "next.probability": probability.float().numpy(),
                **_lens_arrays(lens, _has_right(config, self.tokens, self.mask_token_id)),
            },
            {
                "config": config.to_dict(),
                "rounding": rounding_of(self.dtype),
                "tensors": [dict(vars(info)) for info in infos.values()],
                "equations": equations_json(config),
                "stacks": stacks_of(config),
                "strip_limits": {name: self.strips[name][1] for name in infos if name in self.strips},
                "ids": {"text": self.tokens.tolist(), "source": self.source.tolist()},
                "predicted_position": predicted_position(config, self.tokens.tolist(), self.mask_token_id),
                "circuits": {module: circuits_of(config, module) for module in modules},
                "changed": overwritten_records(interventions, config),
            },
        )


def _sizes(config: ModelConfig, name: str, kind: str, tokens: int, source: int) -> dict[str, int]:
    """The size of each dimension of a tensor."""
    is_encoder, parts = name.startswith("encoder."), {"qkv": 3, "kv": 2}
    read = source if is_encoder else tokens
    return {
        "pos": config.context_length if kind == "parameter" else read,
        "query": read,
        "key": source if is_encoder or ".cross_attn." in name else tokens,
        "head": config.n_heads,
        "kv_head": config.kv_heads,
        "qkv_head": config.n_heads + 2 * config.kv_heads,
        "d_head": config.d_head,
        "d_model": config.d_model,
        "d_ff": config.d_ff,
        "vocab": config.vocab_size,
        "bucket": config.relative_buckets,
        "segment": config.n_segments,
        "part": parts.get(name.split(".")[-2] if "." in name else "", 1),
        "1": 1,
    }


def _right_tokens(config: ModelConfig, tokens: Tensor) -> Tensor:
    """Each position's target, (pos,): the token after it, or for an encoder its own."""
    return tokens.roll(-1) if config.is_causal else tokens


def _has_right(config: ModelConfig, tokens: Tensor, mask_token_id: int | None) -> Tensor:
    """Whether the text has each position's target, (pos,): nothing follows the last token, and a mask hides its own."""
    if not config.is_causal:
        return tokens != (-1 if mask_token_id is None else mask_token_id)
    return torch.arange(len(tokens)) < len(tokens) - 1


def _lens_arrays(lens: LogitLensSummary, has_right: Tensor) -> dict[str, np.ndarray]:
    """The lens's tensors for an outline. has_right: (pos,), whether the right token is known."""
    return {
        "lens": lens.likeliest.int().numpy(),
        "lens.probability": lens.likeliest_probability.numpy(),
        "lens.right": lens.probability.where(has_right, torch.nan).numpy(),
        "lens.rank": lens.rank.where(has_right, 0).int().numpy(),
    }


def _next_of(model: Model, stream: Tensor, sketch: _Sketch) -> tuple[Tensor, Tensor]:
    """The likeliest tokens at each position, and their probabilities; also summarises logits and probabilities."""
    likeliest, probability, known = [], [], {LOGITS: Summary(), PROBABILITIES: Summary()}
    if model.config.logit_cap:
        known[UNCAPPED_LOGITS] = Summary()
    names = known.keys() & {UNCAPPED_LOGITS}
    with model.hooked([(names, lambda tensor, hook: known[hook.name].add(tensor.cpu().numpy()))]):
        for _, logits in logits_in_pieces(model, stream):
            logits = logits.cpu()
            shares = probabilities_of(logits)
            likeliest.append(_likeliest(shares))
            probability.append(shares.gather(-1, likeliest[-1]))
            for name, numbers in ((LOGITS, logits), (PROBABILITIES, shares)):
                known[name].add(numbers.numpy())
    sketch.statistics |= {name: summary.statistics for name, summary in known.items()}
    return torch.cat(likeliest), torch.cat(probability)


def _likeliest(probabilities: Tensor) -> Tensor:
    """The most probable tokens at each position, (pos, LIKELIEST), equal ones by their id. probabilities: (pos, vocab).

    Sorts nothing as long as the vocabulary, unless all tokens are equally probable.
    Raises: LogitsError for probabilities of logits that are not numbers.
    """
    check_logits(float(probabilities.max()))
    count = min(LIKELIEST, probabilities.shape[-1])
    likeliest = torch.empty(len(probabilities), count, dtype=torch.long)
    for row, own in zip(likeliest, probabilities, strict=True):
        among = (own >= own.topk(count).values[-1]).nonzero()[:, 0]
        row[:] = among[own[among].argsort(descending=True, stable=True)[:count]]
    return likeliest


def stacks_of(config: ModelConfig) -> list[dict[str, object]]:
    """The sides of a model: their inputs, and the points that sum to the stream at each depth."""
    sides = [("", "text")]
    if config.architecture == "encoder-decoder":
        sides = [("encoder.", "source"), ("decoder.", "text")]
    stacks = []
    for prefix, tokens in sides:
        points = stream_points(config, prefix)
        stacks.append({"prefix": prefix, "tokens": tokens, "layers": len(points) - 1, "heights": points})
    return stacks
