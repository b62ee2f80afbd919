"""The command line: train a preset, measure a checkpoint, write text, list what there is."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

from .checkpoints import CheckpointError, list_checkpoints, load_checkpoint, save_checkpoint
from .corpora import CorpusError, load_corpus
from .generation import Sampling, generate
from .presets import PRESETS, train_preset
from .training import NotFiniteError, StepReport, evaluate_loss

CHECKPOINTS = Path(__file__).parent.parent / "checkpoints"


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except (CheckpointError, CorpusError, NotFiniteError, OSError, ValueError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m transformer", description=__doc__)
    parser.add_argument("--checkpoints", type=Path, default=CHECKPOINTS, help="the folder of checkpoints")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("train", help="train a preset and save it among the checkpoints")
    command.add_argument("preset", choices=PRESETS)
    command.add_argument("--corpus-dir", type=Path, help="where the texts are; else the cache, else a download")
    command.add_argument("--work-dir", type=Path, help="where to keep the state of the run (default: runs/PRESET)")
    command.add_argument("--resume", action="store_true", help="go on from an interrupted run")
    command.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="cpu is the default")
    command.add_argument("--threads", type=int, help="CPU threads (default: PyTorch's choice)")
    command.set_defaults(run=_train)

    command = commands.add_parser("evaluate", help="measure a checkpoint's loss on its corpus's validation part")
    command.add_argument("name")
    command.add_argument("--corpus-dir", type=Path)
    command.set_defaults(run=_evaluate)

    command = commands.add_parser("generate", help="let a checkpoint go on from a prompt")
    command.add_argument("name")
    command.add_argument("prompt")
    command.add_argument("--tokens", type=int, default=300)
    command.add_argument("--temperature", type=float, default=0.8)
    command.add_argument("--top-k", type=int)
    command.add_argument("--top-p", type=float)
    command.add_argument("--seed", type=int)
    command.set_defaults(run=_generate)

    command = commands.add_parser("list", help="list the checkpoints and the presets")
    command.set_defaults(run=_list)
    return parser


def _train(options: argparse.Namespace) -> None:
    preset = PRESETS[options.preset]
    if options.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("PyTorch finds no CUDA device here; train with --device cpu.")
    if options.threads is not None and options.threads < 1:
        raise ValueError(f"--threads is {options.threads}; it must be 1 or more.")
    if options.threads:
        torch.set_num_threads(options.threads)
    corpus = load_corpus(preset.corpus, options.corpus_dir)
    work_folder = options.work_dir or Path("runs") / preset.name

    def report(step: StepReport, validation_loss: float | None) -> None:
        if validation_loss is not None:
            print(f"step {step.step:6}  batch loss {step.loss:.4f}  validation loss {validation_loss:.4f}  "
                  f"{step.tokens_per_second:,.0f} tokens/s", flush=True)  # fmt: skip

    checkpoint = train_preset(
        preset, corpus, work_folder, resume=options.resume, device=options.device, report=report
    )
    save_checkpoint(options.checkpoints / preset.name, checkpoint, dtype=torch.float16)
    print(f"Saved {options.checkpoints / preset.name}: validation loss {checkpoint.card.validation_loss} nats.")


def _evaluate(options: argparse.Namespace) -> None:
    checkpoint = load_checkpoint(options.checkpoints / options.name)
    corpus = load_corpus(checkpoint.card.corpus.get("name", ""), options.corpus_dir)
    _, validation = corpus.split()
    loss = evaluate_loss(checkpoint.model, checkpoint.tokenizer.encode(validation))
    print(f"{options.name}: {loss:.4f} nats per character over {len(validation):,} characters of "
          f"{corpus.source.title}, in windows of {checkpoint.model.config.context_length}")  # fmt: skip


def _generate(options: argparse.Namespace) -> None:
    checkpoint = load_checkpoint(options.checkpoints / options.name)
    sampling = Sampling(options.temperature, options.top_k, options.top_p, options.seed)
    steps = generate(
        checkpoint.model,
        checkpoint.tokenizer.encode(options.prompt),
        max_new_tokens=options.tokens,
        sampling=sampling,
        names_filter=(),
    )
    print(options.prompt, end="", flush=True)
    for step in steps:
        print(checkpoint.tokenizer.decode([step.token_id]), end="", flush=True)
    print()


def _list(options: argparse.Namespace) -> None:
    for entry in list_checkpoints(options.checkpoints):
        if entry.problem:
            print(f"{entry.name:18} can't be used: {entry.problem}")
        else:
            loss = f"validation loss {entry.card.validation_loss}" if entry.card.validation_loss else ""
            print(f"{entry.name:18} {entry.card.parameters / 1e6:.2f} M parameters  {loss}  {entry.card.summary}")
    print("Presets that can be trained:", ", ".join(PRESETS))


if __name__ == "__main__":
    sys.exit(main())
