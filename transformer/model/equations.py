"""The equations of a forward pass as a table: how each tensor is computed, and from which others.

`equations(config)` lists every hook point in the order of the pass, then the logits and the probabilities: each with
one operation and its operands (other points, parameters, the tokens). Pages, checks and the arithmetic of a single cell
all read this one table.

Dimensions are the registry's, without the batch; `vocab` counts tokens, `part` the queries, keys and values that share
one matrix, `pair` and `side` the two dimensions that rotary positions turn together. Where heads share keys and values,
`kv_head` counts these, `member` the heads that share one, and `qkv_head` the heads of all three in one matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from ..config import ModelConfig

ALL = ":"
"""In `Operand.cells`: all indices along this dimension."""
SEGMENT = "segment"
"""In `Operand.cells`: the segment of the token at the result's position."""
TOKEN = "token"
"""In `Operand.cells`: the id of the token at the result's position."""
LOGITS, PROBABILITIES = "logits", "probabilities"
UNCAPPED_LOGITS = "unembed.hook_uncapped"

OPERATIONS = {
    "look up": "a table's row times a factor",
    "position": "a row of the sinusoidal table",
    "add": "the sum of the terms",
    "spread": "√(variance + ε)",
    "normalise": "(x − mean) / spread · gain + shift",
    "length": "√(mean of the squares + ε)",
    "shorten": "x / length · gain",
    "multiply": "the sum of products, plus a bias",
    "clip": "the sum of products, plus a bias, kept within ± a limit",
    "rotate": "a pair of numbers turned by its position's angle",
    "divide": "÷ √d_head, where the model does so",
    "cap": "cap · tanh(x / cap)",
    "distance": "−slope · how far the key is from the query",
    "bucket": "the table's number for how far the key is before the query",
    "see": "True where a query may see a key",
    "hide": "−∞ where the mask is False",
    "softmax": "exp of each, divided by their sum",
    "average": "1 / how many keys can be seen, 0 where hidden",
    "activate": "the activation function",
    "gate": "the activation function, times what it lets through",
}


@dataclass(frozen=True)
class Operand:
    """One tensor that an equation reads, and which of its cells each cell of the result depends on."""

    name: str
    """The hook point's or parameter's name."""
    dims: tuple[str, ...]
    """Its dimensions as the equation reads it; a parameter with several matrices in it is split into them."""
    cells: tuple[str | int, ...]
    """For each dimension: the result's dimension with the same index; `ALL`; `TOKEN`; or a fixed index."""
    shift: int = 0
    """An offset added to the index of its first dimension."""

    def at(
        self, place: Mapping[str, int], token: int | None = None, segment: int | None = None
    ) -> tuple[int | slice, ...]:
        """The cells that one cell of the result depends on, as an index into the tensor in these dimensions.

        place: the index of the result's cell, by dimension; token, segment: those at its position.
        """
        read = {ALL: slice(None), TOKEN: token, SEGMENT: segment, **place}
        first, *rest = (cell if isinstance(cell, int) else read[cell] for cell in self.cells)
        return (first + self.shift if self.shift else first, *rest)


@dataclass(frozen=True)
class Equation:
    """How one tensor is computed."""

    name: str
    operation: str
    """One of `OPERATIONS`."""
    dims: tuple[str, ...]
    operands: Mapping[str, tuple[Operand, ...]] = field(default_factory=dict)
    """By role; operands that share a role are summed first."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """The operation's settings: `limit`, `cap`, the heads' `slopes`, or the arguments of `rotate`."""

    @property
    def sources(self) -> tuple[Operand, ...]:
        """Every operand, in all roles."""
        return tuple(operand for operands in self.operands.values() for operand in operands)


@lru_cache(maxsize=64)
def equations(config: ModelConfig) -> Mapping[str, Equation]:
    """Every equation of a model with this configuration, by the name of its result, in the order of the pass.

    Cached: don't modify it.
    """
    if config.architecture != "encoder-decoder":
        found = list(_Walk(config, causal=config.is_causal).stack(config.n_layers))
    else:
        encoder = _Walk(config, "encoder.", causal=False)
        found = list(encoder.stack(config.n_encoder_layers))
        found += _Walk(config, "decoder.", memory=encoder.stream).stack(config.n_layers)
    return MappingProxyType({equation.name: equation for equation in found})


@lru_cache(maxsize=64)
def parameter_names(config: ModelConfig) -> tuple[str, ...]:
    """The parameters that the equations read, in the order of the pass."""
    table = equations(config)
    read = [operand.name for equation in table.values() for operand in equation.sources]
    return tuple(dict.fromkeys(name for name in read if name not in table))


def equations_json(config: ModelConfig) -> list[dict[str, Any]]:
    """The table as JSON-ready data: the fields of each equation, in the order of the pass.

    With `config.to_dict()` it describes an architecture completely. An operand's `shift` is left out if it is 0.
    """
    return [
        {**vars(equation), "operands": {role: [_row(each) for each in of] for role, of in equation.operands.items()}}
        for equation in equations(config).values()
    ]


def _row(operand: Operand) -> dict[str, Any]:
    return {name: value for name, value in vars(operand).items() if name != "shift" or value}


def unembedding_equation(config: ModelConfig) -> Equation:
    """The equation of the unembedding: the logits, before any cap."""
    table = equations(config)
    return table.get(UNCAPPED_LOGITS, table[LOGITS])


class _Walk:
    """Walks through one stack and keeps track of which points sum to the stream."""

    def __init__(
        self, config: ModelConfig, prefix: str = "", *, causal: bool = True, memory: tuple[str, ...] | None = None
    ) -> None:
        self.config = config
        self.prefix = prefix
        self.causal = causal
        self.memory = memory
        self.stream: tuple[str, ...] = ()
        """The points whose sum the next sublayer reads."""
        self.beside: list[str] = []
        """Outputs so far of a parallel block's sublayers."""
        self.is_grouped = config.kv_heads != config.n_heads

    def stack(self, n_layers: int) -> Iterator[Equation]:
        yield from self.embeddings()
        for layer in range(n_layers):
            yield from self.block(f"{self.prefix}blocks.{layer}.")
        if self.config.has_final_norm:
            yield from self.norm(f"{self.prefix}ln_final.")
        if self.prefix != "encoder.":
            yield from self.logits()

    def logits(self) -> Iterator[Equation]:
        if self.config.masked_word_head:
            yield from self.head()
        dims, cap = ("pos", "vocab"), self.config.logit_cap
        name = UNCAPPED_LOGITS if cap else LOGITS
        yield self.linear(name, dims, "unembed", ("vocab", "d_model"), self.config.unembed_bias)
        if cap:
            yield Equation(LOGITS, "cap", dims, {"x": (Operand(UNCAPPED_LOGITS, dims, dims),)}, {"cap": cap})
        yield Equation(PROBABILITIES, "softmax", dims, {"x": (Operand(LOGITS, dims, ("pos", ALL)),)})

    def head(self) -> Iterator[Equation]:
        dims = ("pos", "d_model")
        yield self.linear("head.hook_pre", dims, "head.dense", ("d_model", "d_model"), True)
        yield Equation("head.hook_post", "activate", dims, {"x": (Operand("head.hook_pre", dims, dims),)})
        self.stream = ("head.hook_post",)
        yield from self.norm("head.ln.")

    def embeddings(self) -> Iterator[Equation]:
        dims = ("pos", "d_model")
        table = f"{'' if self.config.has_one_table else self.prefix}embed.weight"
        embed, position = f"{self.prefix}hook_embed", f"{self.prefix}hook_pos_embed"
        yield Equation(embed, "look up", dims, {"table": (Operand(table, ("vocab", "d_model"), (TOKEN, "d_model")),)})
        self.stream = (embed,)
        if self.config.positions == "learned":
            rows = Operand(f"{self.prefix}pos_embed.weight", dims, dims)
            yield Equation(position, "add", dims, {"x": (rows,)})
        if self.config.positions == "sinusoidal":
            yield Equation(position, "position", dims)
        if self.config.positions in ("learned", "sinusoidal"):
            self.stream = (embed, position)
        if self.config.n_segments:
            rows = Operand("segment_embed.weight", ("segment", "d_model"), (SEGMENT, "d_model"))
            yield Equation("hook_segment_embed", "look up", dims, {"table": (rows,)}, {"factor": 1.0})
            self.stream = (*self.stream, "hook_segment_embed")
        if self.config.embed_norm:
            yield from self.norm(f"{self.prefix}ln_embed.")

    def block(self, block: str) -> Iterator[Equation]:
        sublayers = ["attn"]
        sublayers += ["cross_attn"] if self.memory is not None else []
        sublayers += ["mlp"] if self.config.d_ff else []
        self.beside = []
        if self.config.residual:
            yield self.sum(f"{block}hook_resid_pre")
        for sublayer in sublayers:
            is_last = sublayer == sublayers[-1]
            yield from self.sublayer(block, sublayer, is_last)

    def sublayer(self, block: str, sublayer: str, is_last: bool) -> Iterator[Equation]:
        """One sublayer with its norm, before or after it, and the residual sum."""
        norm = block + {"attn": "ln1.", "cross_attn": "ln_cross.", "mlp": "ln2."}[sublayer]
        out = block + {"attn": "hook_attn_out", "cross_attn": "hook_cross_attn_out", "mlp": "hook_mlp_out"}[sublayer]
        entering = self.stream
        if self.config.norms_before and (self.config.norm_first_input or norm != "blocks.0.ln1."):
            yield from self.norm(norm)
        given = f"{block}{sublayer}.hook_out" if self.config.norms_what_is_added else out
        yield from self.mlp(block, given) if sublayer == "mlp" else self.attention(f"{block}{sublayer}.", given)
        if self.config.norms_what_is_added:
            self.stream = (given,)
            yield from self.norm(norm.replace(".ln1.", ".ln1_post.").replace(".ln2.", ".ln2_post."))
            yield self.sum(out)
        if self.config.parallel_residual:
            self.beside.append(out)
            self.stream = (*entering, *self.beside) if is_last else entering
            if is_last:
                yield self.sum(f"{block}hook_resid_post")
        elif self.config.residual:
            self.stream = (*entering, out)
            after = {"attn": "hook_resid_mid", "cross_attn": "hook_resid_cross"}
            yield self.sum(block + ("hook_resid_post" if is_last else after[sublayer]))
        else:
            self.stream = (out,)
        if self.config.norm == "post":
            yield from self.norm(norm)

    def norm(self, name: str) -> Iterator[Equation]:
        dims = ("pos", "d_model")
        x = tuple(Operand(part, dims, ("pos", ALL)) for part in self.stream)
        scale, out = f"{name}hook_scale", f"{name}hook_out"
        if self.config.norm_kind == "rms":
            spread = Operand(scale, ("pos", "1"), ("pos", 0))
            gain = Operand(f"{name}weight", ("d_model",), ("d_model",))
            yield Equation(scale, "length", ("pos", "1"), {"x": x})
            yield Equation(out, "shorten", dims, {"x": x, "spread": (spread,), "gain": (gain,)})
            self.stream = (out,)
            return
        yield Equation(scale, "spread", ("pos", "1"), {"x": x})
        yield Equation(
            out,
            "normalise",
            dims,
            {
                "x": x,
                "spread": (Operand(scale, ("pos", "1"), ("pos", 0)),),
                "gain": (Operand(f"{name}weight", ("d_model",), ("d_model",)),),
                "shift": (Operand(f"{name}bias", ("d_model",), ("d_model",)),),
            },
        )
        self.stream = (out,)

    def attention(self, attn: str, out: str) -> Iterator[Equation]:
        crosses = attn.endswith("cross_attn.")
        is_softmax = self.config.attention == "softmax" or crosses
        kv_head = "kv_head" if self.is_grouped else "head"
        heads, of_keys = ("pos", "head", "d_head"), ("key" if crosses else "pos", kv_head, "d_head")
        if crosses:
            yield self.part(f"{attn}hook_q", heads, f"{attn}q", None)
            yield self.part(f"{attn}hook_k", of_keys, f"{attn}kv", 0, self.memory)
            yield self.part(f"{attn}hook_v", of_keys, f"{attn}kv", 1, self.memory)
        elif is_softmax:
            for part, name in enumerate("qkv"):
                make = self.shared_part if self.is_grouped else self.part
                yield make(f"{attn}hook_{name}", of_keys if part else heads, f"{attn}qkv", part)
        else:
            yield self.part(f"{attn}hook_v", heads, f"{attn}v", None)
        names = {"q": f"{attn}hook_q", "k": f"{attn}hook_k"}
        if is_softmax and not crosses and self.config.qk_norm != "none":
            for each, head in (("q", "head"), ("k", kv_head)):
                yield from self.head_norm(f"{attn}{each}_norm.", names[each], head)
                names[each] = f"{attn}{each}_norm.hook_out"
        layer = int(attn.partition("blocks.")[2].partition(".")[0])
        if is_softmax and not crosses and self.config.is_rotated(layer):
            for each, head in (("q", "head"), ("k", kv_head)):
                yield self.rotation(f"{attn}hook_rot_{each}", names[each], head, layer)
                names[each] = f"{attn}hook_rot_{each}"
        yield from self.weighing(attn, names, is_softmax)
        yield from self.mixing(attn, out)

    def head_norm(self, name: str, of: str, head: str) -> Iterator[Equation]:
        """The norm of queries or keys, over each head's dimensions or over all heads' together."""
        dims, whole = ("pos", head, "d_head"), self.config.qk_norm == "all"
        x = (Operand(of, dims, ("pos", ALL, ALL) if whole else ("pos", head, ALL)),)
        of_scale = ("pos", "1", "1") if whole else ("pos", head, "1")
        roles = {"spread": (Operand(f"{name}hook_scale", of_scale, ("pos", 0 if whole else head, 0)),)}
        roles["gain"] = (Operand(f"{name}weight", dims[1:], dims[1:]),)
        is_rms = self.config.norm_kind == "rms"
        if not is_rms:
            roles["shift"] = (Operand(f"{name}bias", dims[1:], dims[1:]),)
        yield Equation(f"{name}hook_scale", "length" if is_rms else "spread", of_scale, {"x": x})
        yield Equation(f"{name}hook_out", "shorten" if is_rms else "normalise", dims, {"x": x, **roles})

    def rotation(self, name: str, of: str, head: str, layer: int) -> Equation:
        """Rotated queries or keys: pair by pair, or the whole vector at once if only part of it is rotated."""
        constants = self.config.rotation(layer)
        if self.config.rotated_dims < self.config.d_head:
            dims = ("pos", head, "d_head")
            return Equation(name, "rotate", dims, {"x": (Operand(of, dims, ("pos", head, ALL)),)}, constants)
        is_halves = self.config.rotary_pairs == "halves"
        pairs = ("pos", head, *(("side", "pair") if is_halves else ("pair", "side")))
        cells = tuple(ALL if dim == "side" else dim for dim in pairs)
        return Equation(name, "rotate", pairs, {"x": (Operand(of, pairs, cells),)}, constants)

    def weighing(self, attn: str, names: Mapping[str, str], is_softmax: bool) -> Iterator[Equation]:
        """The equations from queries and keys, as they enter the dot product, to the pattern."""
        scores = ("head", "query", "key")
        mask = Operand(f"{attn}hook_mask", ("query", "key"), ("query", "key"))
        if is_softmax:
            head, kv_head = (("kv_head", "member"), "kv_head") if self.is_grouped else (("head",), "head")
            q = Operand(names["q"], ("query", *head, "d_head"), ("query", *head, ALL))
            k = Operand(names["k"], ("key", kv_head, "d_head"), ("key", kv_head, ALL))
            of_pairs = (*head, "query", "key")
            yield Equation(f"{attn}hook_raw_scores", "multiply", of_pairs, {"x": (q,), "weight": (k,)})
            raw = Operand(f"{attn}hook_raw_scores", scores, scores)
            yield Equation(f"{attn}hook_scaled_scores", "divide", scores, {"x": (raw,)})
        terms, of_self = [f"{attn}hook_scaled_scores"], not attn.endswith("cross_attn.")
        if of_self and (cap := self.config.score_cap):
            x = (Operand(terms[0], scores, scores),)
            terms = [f"{attn}hook_capped_scores"]
            yield Equation(terms[0], "cap", scores, {"x": x}, {"cap": cap})
        if of_self and self.config.positions == "relative":
            terms.append(f"{attn}hook_position_bias")
            yield self.relative_bias(attn)
        if of_self and self.config.positions == "alibi":
            terms.append(f"{attn}hook_position_bias")
            yield Equation(terms[-1], "distance", scores, constants={"slopes": self.config.slopes})
        yield Equation(f"{attn}hook_mask", "see", ("query", "key"))
        if is_softmax:
            x = tuple(Operand(term, scores, scores) for term in terms)
            yield Equation(f"{attn}hook_attn_scores", "hide", scores, {"x": x, "mask": (mask,)})
            row = Operand(f"{attn}hook_attn_scores", scores, ("head", "query", ALL))
            yield Equation(f"{attn}hook_pattern", "softmax", scores, {"x": (row,)})
        else:
            row = Operand(f"{attn}hook_mask", ("query", "key"), ("query", ALL))
            yield Equation(f"{attn}hook_pattern", "average", scores, {"x": (row,)})

    def relative_bias(self, attn: str) -> Equation:
        table = Operand(f"{attn}relative_bias.weight", ("bucket", "head"), (ALL, "head"))
        is_causal = self.config.is_causal and self.prefix != "encoder."
        constants = {
            "buckets": self.config.relative_buckets,
            "distance": self.config.relative_distance,
            "causal": is_causal,
        }
        return Equation(f"{attn}hook_position_bias", "bucket", ("head", "query", "key"), {"table": (table,)}, constants)

    def mixing(self, attn: str, out: str) -> Iterator[Equation]:
        """The equations from the pattern to attention's output."""
        heads, table = ("pos", "head", "d_head"), ("d_model", "head", "d_head")
        head, kv_head = (("kv_head", "member"), "kv_head") if self.is_grouped else (("head",), "head")
        pattern = Operand(f"{attn}hook_pattern", (*head, "query", "key"), (*head, "pos", ALL))
        v = Operand(f"{attn}hook_v", ("key", kv_head, "d_head"), (ALL, kv_head, "d_head"))
        yield Equation(f"{attn}hook_z", "multiply", ("pos", *head, "d_head"), {"x": (pattern,), "weight": (v,)})
        z = Operand(f"{attn}hook_z", heads, ("pos", "head", ALL))
        of_head = Operand(f"{attn}out.weight", table, ("d_model", "head", ALL))
        yield Equation(f"{attn}hook_result", "multiply", ("pos", "head", "d_model"), {"x": (z,), "weight": (of_head,)})
        operands = {
            "x": (Operand(f"{attn}hook_z", heads, ("pos", ALL, ALL)),),
            "weight": (Operand(f"{attn}out.weight", table, ("d_model", ALL, ALL)),),
        }
        if self.config.has_out_bias:
            operands["bias"] = (Operand(f"{attn}out.bias", ("d_model",), ("d_model",)),)
        yield Equation(out, "multiply", ("pos", "d_model"), operands)

    def mlp(self, block: str, out: str) -> Iterator[Equation]:
        pre, post, hidden = f"{block}mlp.hook_pre", f"{block}mlp.hook_post", ("pos", "d_ff")
        table, bias = ("d_ff", "d_model"), self.config.mlp_bias
        x = (Operand(pre, hidden, hidden),)
        if self.config.mlp_gate:
            let_through = f"{block}mlp.hook_pre_linear"
            yield self.linear(pre, hidden, f"{block}mlp.gate", table, bias)
            yield self.linear(let_through, hidden, f"{block}mlp.up", table, bias)
            yield Equation(post, "gate", hidden, {"x": x, "factor": (Operand(let_through, hidden, hidden),)})
        else:
            yield self.linear(pre, hidden, f"{block}mlp.up", table, bias)
            yield Equation(post, "activate", hidden, {"x": x})
        self.stream = (post,)
        yield self.linear(out, ("pos", "d_model"), f"{block}mlp.down", ("d_model", "d_ff"), self.config.mlp_bias)

    def linear(self, name: str, dims: tuple[str, str], module: str, table: tuple[str, str], biased: bool) -> Equation:
        """x · W + b, where x is the current stream. table: the dimensions of W, its output's first."""
        output, width = table
        operands = {
            "x": tuple(Operand(part, ("pos", width), ("pos", ALL)) for part in self.stream),
            "weight": (Operand(f"{module}.weight", table, (output, ALL)),),
        }
        if biased:
            operands["bias"] = (Operand(f"{module}.bias", (output,), (output,)),)
        return Equation(name, "multiply", dims, operands)

    def part(
        self, name: str, dims: tuple[str, ...], module: str, part: int | None, stream: tuple[str, ...] | None = None
    ) -> Equation:
        """Queries, keys or values. part: which slice of a shared matrix; None if the matrix holds nothing else."""
        position, *heads = dims
        cut, chosen = ((), ()) if part is None else (("part",), (part,))
        operands = {
            "x": tuple(Operand(each, (position, "d_model"), (position, ALL)) for each in stream or self.stream),
            "weight": (Operand(f"{module}.weight", (*cut, *heads, "d_model"), (*chosen, *heads, ALL)),),
        }
        if self.config.attention_bias:
            operands["bias"] = (Operand(f"{module}.bias", (*cut, *heads), (*chosen, *heads)),)
        return self.clipped(name, dims, operands)

    def shared_part(self, name: str, dims: tuple[str, ...], module: str, part: int) -> Equation:
        """The same for a matrix with fewer heads of keys and values than of queries, stacked one after another."""
        first = (0, self.config.n_heads, self.config.n_heads + self.config.kv_heads)[part]
        position, head, width = dims
        operands = {
            "x": tuple(Operand(each, (position, "d_model"), (position, ALL)) for each in self.stream),
            "weight": (Operand(f"{module}.weight", ("qkv_head", width, "d_model"), (head, width, ALL), first),),
        }
        if self.config.attention_bias:
            operands["bias"] = (Operand(f"{module}.bias", ("qkv_head", width), (head, width), first),)
        return self.clipped(name, dims, operands)

    def clipped(self, name: str, dims: tuple[str, ...], operands: Mapping[str, tuple[Operand, ...]]) -> Equation:
        """A matrix product, clipped if the model clips queries, keys and values."""
        limit = None if ".cross_attn." in name else self.config.qkv_clip
        return Equation(name, "clip" if limit else "multiply", dims, operands, {"limit": limit} if limit else {})

    def sum(self, name: str) -> Equation:
        """The stream as one tensor."""
        dims = ("pos", "d_model")
        terms = tuple(Operand(part, dims, dims) for part in self.stream)
        self.stream = (name,)
        return Equation(name, "add", dims, {"x": terms})
