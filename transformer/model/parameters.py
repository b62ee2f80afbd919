"""Describes each parameter of a model in a sentence, as the registry does for hook points."""

from __future__ import annotations

_MEANINGS = {
    "pos_embed.weight": "The table of learned positions: a row for each place.",
    "segment_embed.weight": "The table of segments: a row for each.",
    "dense.weight": "W of the head: the directions that its hidden layer responds to.",
    "dense.bias": "b of the head: added to each number of its hidden layer.",
    "relative_bias.weight": "For each kind of distance, what each head adds to a score.",
    "embed.weight": "The embedding table: a row for each token.",
    "unembed.weight": "W_U, the unembedding: for each token the direction that raises its logit.",
    "unembed.bias": "b_U: added to each token's logit, whatever the text.",
    "qkv.weight": "W_Q, W_K and W_V of all heads, one after another.",
    "qkv.bias": "b_Q, b_K and b_V of all heads, one after another.",
    "kv.weight": "W_K and W_V of all heads, one after another; they read the memory.",
    "kv.bias": "b_K and b_V of all heads, one after another.",
    "q.weight": "W_Q of all heads.",
    "q.bias": "b_Q of all heads.",
    "v.weight": "W_V of all heads.",
    "v.bias": "b_V of all heads.",
    "out.weight": "W_O: how each head's average is written into the residual stream.",
    "out.bias": "b_O: what attention adds to the stream whatever it looks at.",
    "gate.weight": "W_gate: for each hidden neuron, the direction that opens its gate.",
    "gate.bias": "b_gate: added to each gate before the activation.",
    "up.weight": "W_up: for each hidden neuron, the direction that it responds to.",
    "up.bias": "b_up: added to each hidden neuron before the activation.",
    "down.weight": "W_down: for each hidden neuron, the direction that it adds to the residual stream.",
    "down.bias": "b_down: what the feed-forward layer adds whatever it reads.",
}
"""By the ending of a parameter's name."""
_OF_NORMS = {
    "weight": "The gain of this norm: a factor for each dimension.",
    "bias": "The shift of this norm: a term for each dimension.",
}


def parameter_meaning(name: str) -> str:
    """The meaning of a parameter, by its dotted name. Raises: ValueError for a name that no model has."""
    module, _, kind = name.rpartition(".")
    last = module.rpartition(".")[2]
    if (last.startswith("ln") or last in ("q_norm", "k_norm")) and kind in _OF_NORMS:
        return _OF_NORMS[kind]
    try:
        return _MEANINGS[f"{last}.{kind}"]
    except KeyError:
        raise ValueError(f"No model has a parameter called {name!r}.") from None
