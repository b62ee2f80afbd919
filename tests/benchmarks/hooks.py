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
"""

import ast
import importlib
import sys
import time
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import torch

from transformer import DecoderOnly, ModelConfig, build_model

from .measuring import alternate, figures_of, keep_freed_memory, machine, print_ratios, print_timings, ratio

CONFIG = ModelConfig(vocab_size=65, context_length=64, n_layers=4, n_heads=4, d_model=128)
TARGETS = {"present_ratio": 1.05, "record_all_ratio": 1.40}
WITH_HOOK_POINTS = ("layers", "attention", "blocks", "stacks", "models")
"""The files of `transformer/model/` whose code calls hook points, in the order they import one another."""
SHARED = ("masks", "positions", "weights", "registry", "caches", "dropout", "initialization")
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
    return {
        **figures_of(ratios),
        **{f"{name}_target": target for name, target in TARGETS.items()},
        **{f"{name}_ms": round(1000 * timing.median, 4) for name, timing in timings.items()},
        "rounds": rounds,
        "points_recorded": recorded,
        **machine(),
    }


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
