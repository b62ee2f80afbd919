"""Benchmarks generation with all attention patterns kept, against other libraries.

128 tokens after a prompt of 32, by a model of 4 layers, 4 heads and 128 dimensions of GPT-2's shape (learned
positions, pre-norm, GELU by tanh), greedily and sampled (temperature 0.8, top-k 20, top-p 0.95), one after another, on
one thread, whose processor time is measured:

- ours: `generate`, with the patterns of all layers and heads recorded at every step, and each step kept.
- ours, statistics: the same, with each token's probability, rank and entropy asked for, which the others don't tell.
- ours, a head silenced, and ours, a scaled stream: the same as the first, with an intervention in every pass.
- bare: the engine's model alone, `model(token, past=past)`, over the text that was written: nothing is recorded, drawn
  or kept.
- Hugging Face: `GPT2LMHeadModel.generate(output_attentions=True, use_cache=True)`, attention "eager", which returns
  the same patterns. The benchmark stops if it writes another text than ours, or has other patterns.
- TransformerLens: `TransformerBridge.generate` around Hugging Face's model, with its cache of keys and values. It
  records nothing while it writes (`return_cache=True` would run the finished text through the model once more).

`…_speedup` is how many times the other's tokens a second ours are; `…_of_bare` is the share of bare's, and
`…_of_unchanged` that of the model without the intervention. The peers are in
`tests/benchmarks/requirements.txt`; one that is not installed is left out.
"""

import gc
import os
import time
from collections.abc import Callable
from typing import Any

import torch

from transformer import DecoderOnly, Intervention, KeyValueCache, ModelConfig, Sampling, Scale, build_model, generate

from .measuring import Timing, alternate, figures_of, keep_freed_memory, machine, print_ratios, print_timings, ratio

CONFIG = ModelConfig(
    vocab_size=65, context_length=256, n_layers=4, n_heads=4, d_model=128, positions="learned", activation="gelu_tanh"
)
PROMPT_LENGTH, NEW_TOKENS = 32, 128
MODES = {"greedy": Sampling(temperature=0), "sampled": Sampling(temperature=0.8, top_k=20, top_p=0.95, seed=1)}
TARGETS = {"hugging_face_speedup": 2.0, "of_bare": 0.7, "of_unchanged": 0.6}
CHANGED = {
    "silenced_head": (Scale("blocks.1.attn.hook_z", head=0),),
    "scaled_stream": (Scale("blocks.1.hook_resid_pre", factor=0.5),),
}
INSTALL = "python -m pip install -r tests/benchmarks/requirements.txt"

Writer = Callable[[Sampling], object]
"""Writes the text once, with a sampling."""


def run(quick: bool = False) -> dict:
    """Measure, print the table, and return every figure."""
    torch.set_num_threads(1)
    model = build_model(CONFIG, seed=0).eval()
    prompt = torch.randint(CONFIG.vocab_size, (PROMPT_LENGTH,), generator=torch.Generator().manual_seed(0)).tolist()
    return measure(model, prompt, NEW_TOKENS, rounds=10 if quick else 60)


def measure(model: DecoderOnly, prompt: list[int], new_tokens: int, rounds: int) -> dict:
    """Measure a model and what peers there are; print the table, and return every figure."""
    writers, missing = peers(model, prompt, new_tokens)
    text = [step.token_id for step in ours(model, prompt, new_tokens)(MODES["greedy"])]
    writers = {
        "ours": ours(model, prompt, new_tokens),
        "ours_statistics": lambda sampling: [
            (step.probability, step.rank, step.entropy) for step in ours(model, prompt, new_tokens)(sampling)
        ],
        **{f"ours_{name}": ours(model, prompt, new_tokens, changed) for name, changed in CHANGED.items()},
        **writers,
    }
    things = {
        f"{mode}_{name}": lambda write=write, sampling=sampling: write(sampling)
        for mode, sampling in MODES.items()
        for name, write in writers.items()
    }
    things["bare"] = bare(model, prompt, text)
    keep_freed_memory()
    timings = alternate(things, rounds, clock=time.thread_time, warm_up=2, before_each=gc.collect)
    ratios = _ratios(timings)
    print_timings(f"writing {new_tokens} tokens", timings)
    print_ratios(ratios, TARGETS, "at least")
    for sentence in missing:
        print(sentence)
    return {
        **figures_of(ratios),
        **{f"{name}_tokens_per_second": round(new_tokens / timing.median, 1) for name, timing in timings.items()},
        "not_measured": missing,
        "rounds": rounds,
        **machine(),
    }


def ours(
    model: DecoderOnly, prompt: list[int], new_tokens: int, interventions: tuple[Intervention, ...] = ()
) -> Writer:
    """Writes with every attention pattern recorded; returns the steps."""
    names = [name for name in model.hook_names() if name.endswith("attn.hook_pattern")]
    return lambda sampling: list(
        generate(
            model, prompt, max_new_tokens=new_tokens, sampling=sampling, names_filter=names, interventions=interventions
        )
    )


def bare(model: DecoderOnly, prompt: list[int], text: list[int]) -> Callable[[], None]:
    """The forward passes that writing this text takes, and nothing else."""

    pieces = [torch.tensor([prompt]), *(torch.tensor([[token]]) for token in text[:-1])]

    @torch.no_grad()
    def passes() -> None:
        past = KeyValueCache.for_model(model.config)
        for piece in pieces:
            model(piece, past=past)

    return passes


def peers(model: DecoderOnly, prompt: list[int], new_tokens: int) -> tuple[dict[str, Writer], list[str]]:
    """Those of the other systems that are installed, and a sentence for each that is not."""
    found, missing = {}, []
    for name, title, make in (
        ("hugging_face", "Hugging Face transformers", hugging_face),
        ("transformer_lens", "TransformerLens", transformer_lens),
    ):
        try:
            found[name] = make(model, prompt, new_tokens)
        except ImportError as error:
            missing.append(f"{title} was not measured, because it can't be imported ({error}). Try: {INSTALL}")
    return found, missing


def hugging_face(model: DecoderOnly, prompt: list[int], new_tokens: int) -> Writer:
    """Writes with Hugging Face transformers. Raises RuntimeError if that gives another text, or other patterns."""
    theirs = gpt2(model)
    tokens = torch.tensor([prompt])

    def write(sampling: Sampling):
        return theirs.generate(
            tokens,
            attention_mask=torch.ones_like(tokens),
            max_new_tokens=new_tokens,
            use_cache=True,
            output_attentions=True,
            return_dict_in_generate=True,
            **_choice(sampling),
        )

    found, expected = write(MODES["greedy"]), ours(model, prompt, new_tokens)(MODES["greedy"])
    if found.sequences[0, len(prompt) :].tolist() != [step.token_id for step in expected]:
        raise RuntimeError("Hugging Face's model writes another text than ours, so their speeds can't be compared.")
    for step, patterns in zip(expected, found.attentions, strict=True):
        if not all(torch.allclose(*pair, atol=1e-5) for pair in zip(step.cache.values(), patterns, strict=True)):
            raise RuntimeError(f"At position {step.position} Hugging Face's model has other patterns than ours.")
    return write


def transformer_lens(model: DecoderOnly, prompt: list[int], new_tokens: int) -> Writer:
    """Writes with TransformerLens."""
    theirs, tokens = bridge(model), torch.tensor([prompt])
    return lambda sampling: theirs.generate(
        tokens, max_new_tokens=new_tokens, stop_at_eos=False, return_type="tokens", verbose=False, **_choice(sampling)
    )


def bridge(model: DecoderOnly) -> Any:
    """Our weights in TransformerLens, which from version 4 on wraps Hugging Face's model."""
    from transformer_lens.model_bridge.sources import build_bridge_from_module

    inner = gpt2(model)
    return build_bridge_from_module(inner, "GPT2LMHeadModel", hf_config=inner.config)


def gpt2(model: DecoderOnly) -> torch.nn.Module:
    """Our weights in Hugging Face's GPT-2, whose linear layers are transposed."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is to be fetched
    from transformers import GPT2Config, GPT2LMHeadModel

    config = model.config
    theirs = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=config.vocab_size,
            n_positions=config.context_length,
            n_embd=config.d_model,
            n_layer=config.n_layers,
            n_head=config.n_heads,
            layer_norm_epsilon=config.layer_norm_eps,
            activation_function="gelu_new",
            tie_word_embeddings=False,
            bos_token_id=None,
            eos_token_id=None,
            attn_implementation="eager",
        )
    )
    weights = {}
    for name, weight in model.state_dict().items():
        for part, their_part in GPT2_NAMES.items():
            name = name.replace(part, their_part)
        linear = ".h." in name and weight.dim() == 2
        weights[name] = weight.T if linear else weight
    theirs.load_state_dict(weights)
    return theirs.eval()


GPT2_NAMES = {
    "pos_embed.": "transformer.wpe.",
    "unembed.": "lm_head.",
    "ln_final.": "transformer.ln_f.",
    "blocks.": "transformer.h.",
    "attn.qkv.": "attn.c_attn.",
    "attn.out.": "attn.c_proj.",
    "mlp.up.": "mlp.c_fc.",
    "mlp.down.": "mlp.c_proj.",
    ".ln1.": ".ln_1.",
    ".ln2.": ".ln_2.",
    "embed.": "transformer.wte.",
}
"""Parts of our parameters' names, and what Hugging Face calls them."""


def _choice(sampling: Sampling) -> dict:
    """How the next token is chosen, as both peers are told."""
    if sampling.temperature == 0:
        return {"do_sample": False}
    return {"do_sample": True, "temperature": sampling.temperature, "top_k": sampling.top_k, "top_p": sampling.top_p}


def _ratios(timings: dict[str, Timing]) -> dict[str, dict[str, float]]:
    ratios = {}
    for mode in MODES:
        mine = timings[f"{mode}_ours"]
        for peer in ("hugging_face", "transformer_lens"):
            if theirs := timings.get(f"{mode}_{peer}"):
                ratios[f"{mode}_{peer}_speedup"] = ratio(theirs, to=mine)
        ratios[f"{mode}_of_bare"] = ratio(timings["bare"], to=mine)
        for name in CHANGED:
            ratios[f"{mode}_{name}_of_unchanged"] = ratio(mine, to=timings[f"{mode}_ours_{name}"])
        ratios[f"{mode}_statistics_of_bare"] = ratio(timings["bare"], to=timings[f"{mode}_ours_statistics"])
    return ratios
