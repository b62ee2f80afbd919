"""The command line: train a preset or a ladder; measure, import, export and list checkpoints; write; serve the API."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .output_pipe import until_closed


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = _parser().parse_args(arguments)
    from .commands import COMMANDS, ERRORS, SHIPPED, in_words  # with PyTorch, for which who asks for help needn't wait

    options.checkpoints = options.checkpoints or SHIPPED
    try:
        COMMANDS[options.command](options)
    except BrokenPipeError:
        raise  # to `until_closed`
    except ERRORS as error:
        print(f"Error: {in_words(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m transformer", description=__doc__)
    parser.add_argument("--checkpoints", type=Path, help="their folder (default: the shipped ones')")
    commands = parser.add_subparsers(required=True, dest="command", metavar="COMMAND")

    command = commands.add_parser(
        "train",
        help="train a preset and save it among the checkpoints",
        epilog="On several processes: torchrun --nproc-per-node 2 --max-restarts 3 -m transformer train PRESET. Each "
        "takes its share of every batch; if one fails, all go on from the last state, as with --resume.",
    )
    command.add_argument("preset", help="one of those that list tells")
    command.add_argument("--corpus-dir", type=Path, help="where the texts are; else the cache, else a download")
    command.add_argument("--work-dir", type=Path, help="where to keep the state of the run (default: runs/PRESET)")
    command.add_argument("--resume", action="store_true", help="continue an interrupted run")
    command.add_argument("--device", default="cpu", choices=("cpu", "cuda", "mps"), help="cpu is the default")
    command.add_argument(
        "--dtype",
        choices=("float32", "bfloat16"),
        help="what the forward pass computes in (default: bfloat16 where it is faster); weights are float32",
    )
    command.add_argument("--compile", action="store_true", help="compile the model first, which pays on a GPU")
    command.add_argument("--threads", type=int, help="CPU threads (default: PyTorch's choice)")

    command = commands.add_parser("ladder", help="train the rungs of a ladder and compare them")
    command.add_argument(
        "--which", choices=("first", "since-2017"), default="first", help="to a transformer, or from the first on"
    )
    command.add_argument("--corpus-dir", type=Path)
    command.add_argument("--work-dir", type=Path, help="where to keep the states of the runs (default: runs)")
    command.add_argument("--threads", type=int)
    command.add_argument("--resume", action="store_true", help="continue an interrupted run")
    command.set_defaults(device="cpu", dtype=None, compile=False)

    command = commands.add_parser("evaluate", help="measure a checkpoint on what its training never saw")
    command.add_argument("name")
    command.add_argument("--corpus-dir", type=Path)

    command = commands.add_parser("generate", help="let a checkpoint continue a prompt")
    command.add_argument("name", help="a checkpoint, or the path of somebody else's model: its folder, or a .gguf file")
    command.add_argument("prompt")
    command.add_argument("--tokens", type=int, default=300)
    command.add_argument("--temperature", type=float, default=0.8)
    command.add_argument("--top-k", type=int)
    command.add_argument("--top-p", type=float)
    command.add_argument("--seed", type=int)
    command.add_argument(
        "--special-tokens",
        action="store_true",
        help="names of special tokens in the prompt, such as <|im_start|>, are those tokens (default: letters)",
    )

    command = commands.add_parser("import", help="make a checkpoint of somebody else's model")
    command.add_argument("source", help="a folder in Hugging Face layout, a .gguf file, or OWNER/NAME on the hub")
    command.add_argument("--name", help="what the checkpoint is called (default: as the source)")

    command = commands.add_parser("export", help="write a checkpoint as a folder in Hugging Face layout")
    command.add_argument("name", help="a checkpoint, or the path of a model as for generate")
    command.add_argument("folder", type=Path, help="a folder that doesn't exist yet")

    command = commands.add_parser("serve", help="answer over HTTP: the API under /api, without the pages")
    command.add_argument("--host", default="127.0.0.1", help="0.0.0.0 to be reached from other machines")
    command.add_argument("--port", type=int, default=8000)

    command = commands.add_parser("site", help="write a static site that computes the checkpoints in a browser")
    command.add_argument("folder", type=Path, help="a new folder, or that of an earlier site")

    command = commands.add_parser("list", help="list the checkpoints and the presets")
    return parser


if __name__ == "__main__":
    sys.exit(until_closed(main))
