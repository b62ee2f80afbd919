"""Benchmarks hook points: unused, and all recorded.

Three forward passes of the same weights (4 layers, 128 wide, 4 heads) over the same 64 tokens, one after
another, in inference mode, on one thread, whose processor time is measured:

- without: the model whose source never mentions a hook point. Its code is compiled from the engine's own files, in
  which every `self.hook_x(tensor)` is replaced by `tensor` and every question whether anyone looks by `False`. That is
  stricter than swapping points for identity functions, whose calls would still have to be paid for.
- plain: the engine's model, `model(tokens)`.
- record_all: `model.run_with_cache(tokens)`, which takes the explicit way through attention and keeps every point.

`present_ratio` is plain / without, `record_all_ratio` is record_all / plain. Both are measured once freed memory is
kept, as it is in the app (see `keep_freed_memory`); `record_all_ratio_bare_process` is the latter before that.

Beside TransformerLens, where it is installed (`tests/benchmarks/requirements.txt`): our weights (6 layers, 384 wide, 6
heads, of GPT-2's shape) in its `TransformerBridge`, over 64 and 256 tokens: a forward pass, all attention patterns, and
everything that either one keeps. `…_speedup` is how many times as long its pass takes.
"""

import ast
import importlib
import sys
import time
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import torch

from transformer import DecoderOnly, ModelConfig, build_model

from .generation import INSTALL, bridge
from .measuring import Timing, alternate, figures_of, keep_freed_memory, machine, print_ratios, print_timings, ratio

CONFIG = ModelConfig(vocab_size=65, context_length=64, n_layers=4, n_heads=4, d_model=128)
TARGETS = {"present_ratio": 1.05, "record_all_ratio": 1.40}
PEER_CONFIG = ModelConfig(
    vocab_size=65, context_length=256, n_layers=6, n_heads=6, d_model=384, positions="learned", activation="gelu_tanh"
)
WITH_HOOK_POINTS = ("layers", "attention", "blocks", "stacks", "models")
"""The files of `transformer/model/` whose code calls hook points, in the order they import one another."""
SHARED = ("modes", "masks", "positions", "equations", "effective_weights", "weights")
SHARED += ("registry", "caches", "dropout", "initialization")
"""Those that the model without hook points has as they are."""


def run(quick: bool = False) -> dict:
    """Measure, print the table, and return every figure."""
    torch.set_num_threads(1)
    model = build_model(CONFIG, seed=0).eval()
    without = model_without_hook_points(model)
    tokens = torch.randint(CONFIG.vocab_size, (1, CONFIG.context_length), generator=torch.Generator().manual_seed(0))
    passes = {
        "without": lambda: without(tokens),
        "plain": lambda: model(tokens),
        "record_all": lambda: model.run_with_cache(tokens),
    }
    rounds = 300 if quick else 3000
    with torch.inference_mode():
        torch.testing.assert_close(without(tokens), model(tokens), rtol=0, atol=0)
        recorded = len(model.run_with_cache(tokens)[1])
        bare = alternate(passes, rounds // 10, clock=time.thread_time)
        keep_freed_memory()
        timings = alternate(passes, rounds, clock=time.thread_time)
    ratios = {
        "present_ratio": ratio(timings["plain"], to=timings["without"]),
        "record_all_ratio": ratio(timings["record_all"], to=timings["plain"]),
        "record_all_ratio_bare_process": ratio(bare["record_all"], to=bare["plain"]),
    }
    print_timings("forward pass", timings)
    print_ratios(ratios, TARGETS, "at most")
    peer_ratios, missing = against_transformer_lens(rounds // 60)
    return {
        **figures_of(ratios | peer_ratios),
        "not_measured": missing,
        **{f"{name}_target": target for name, target in TARGETS.items()},
        **{f"{name}_ms": round(1000 * timing.median, 4) for name, timing in timings.items()},
        "rounds": rounds,
        "points_recorded": recorded,
        **machine(),
    }


def against_transformer_lens(rounds: int) -> tuple[dict[str, dict[str, float]], list[str]]:
    """Measure and print; how many times as long its passes take, and a sentence if it isn't installed."""
    ours = build_model(PEER_CONFIG, seed=0).eval()
    try:
        theirs = bridge(ours)
    except ImportError as error:
        missing = f"TransformerLens was not measured, because it can't be imported ({error}). Try: {INSTALL}"
        print(missing)
        return {}, [missing]
    patterns = [name for name in ours.hook_names() if name.endswith("attn.hook_pattern")]
    timings: dict[str, Timing] = {}
    for length in (64, 256):
        tokens = torch.randint(PEER_CONFIG.vocab_size, (1, length), generator=torch.Generator().manual_seed(0))
        passes = {
            "forward": (lambda t: ours(t), lambda t: theirs(t)),
            "patterns": (
                lambda t: ours.run_with_cache(t, names_filter=patterns),
                lambda t: theirs.run_with_cache(t, names_filter=lambda name: name.endswith("attn.hook_pattern")),
            ),
            "everything": (lambda t: ours.run_with_cache(t), lambda t: theirs.run_with_cache(t)),
        }
        things = {
            f"{what}_of_{length}_{whose}": lambda run=run, tokens=tokens: run(tokens)
            for what, pair in passes.items()
            for whose, run in zip(("ours", "transformer_lens"), pair, strict=True)
        }
        with torch.inference_mode():
            torch.testing.assert_close(theirs(tokens), ours(tokens), atol=1e-4, rtol=1e-4)
            timings |= alternate(things, rounds, clock=time.thread_time, warm_up=3)
    print_timings("beside TransformerLens", timings)
    pairs = {name: name.removesuffix("_ours") for name in timings if name.endswith("_ours")}
    ratios = {
        f"{what}_speedup": ratio(timings[f"{what}_transformer_lens"], to=timings[name]) for name, what in pairs.items()
    }
    print_ratios(ratios, {"_speedup": 1.0}, "at least")
    return ratios, []


def model_without_hook_points(model: DecoderOnly) -> torch.nn.Module:
    """The same weights in a model compiled from the engine's source with every call of a hook point taken out."""
    models = _compiled_without_hook_points()["models"]
    bare = models.DecoderOnly(model.config)
    bare.load_state_dict(model.state_dict())
    return bare.eval()


def _compiled_without_hook_points() -> dict:
    """The engine's modules again, as a package of another name, which leaves the real one as it is."""
    package = "transformer_without_hook_points"
    shared = ("config", "hooks", *(f"model.{name}" for name in SHARED))
    modules = {name: importlib.import_module(f"transformer.{name}") for name in shared}
    for folder in (package, f"{package}.model"):
        sys.modules[folder] = module_from_spec(spec_from_loader(folder, loader=None, is_package=True))
    sys.modules.update({f"{package}.{name}": module for name, module in modules.items()})
    for name in WITH_HOOK_POINTS:
        source = Path(importlib.import_module(f"transformer.model.{name}").__file__)
        module = module_from_spec(spec_from_loader(f"{package}.model.{name}", loader=None, origin=str(source)))
        sys.modules[module.__name__] = modules[name] = module
        tree = _WithoutHookPoints().visit(ast.parse(source.read_text(encoding="utf-8")))
        exec(compile(ast.fix_missing_locations(tree), str(source), "exec"), module.__dict__)
    return modules


class _WithoutHookPoints(ast.NodeTransformer):
    """Replaces `….hook_x(tensor)` by `tensor`, and every question whether anyone looks or edits by False."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name.startswith("hook_") and name != "hook_points":
            return node.args[0]
        return ast.Constant(False) if name == "_scores_are_looked_at" else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        return ast.Constant(False) if node.attr in ("is_watched", "is_edited") else node
