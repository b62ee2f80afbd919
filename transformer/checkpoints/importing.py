"""Imports a pretrained model as a checkpoint: for operators, never for visitors."""

from __future__ import annotations

import re
from pathlib import Path

from .folder import Checkpoint, CheckpointError, reason, save_checkpoint
from .pretrained import is_gguf, load_pretrained

HUB_ID = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)
WANTED = (
    "*.safetensors",
    "*.safetensors.index.json",
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "*.model",
    "*.spm",
    "chat_template.jinja",
)
"""The files to fetch of a model on the hub: no code, no pickles."""


def import_pretrained(source: str, checkpoints: Path, name: str | None = None) -> tuple[str, Checkpoint]:
    """Write a checkpoint of a folder in Hugging Face layout, a `.gguf` file, or a model on the hub.

    name: the checkpoint's name; None for the source's own. Weights keep the type that they were opened in.
    Returns: that name, and the checkpoint.
    Raises: CheckpointError if the source can't be read or fetched, or there is a checkpoint of this name already.
    """
    path = Path(source)
    name = name or (path.stem if is_gguf(path) else path.resolve().name).lower()
    if not NAME.fullmatch(name):
        raise CheckpointError(f"{name!r} can't be a checkpoint's name; choose one of letters and digits with --name.")
    if (checkpoints / name).exists():
        raise CheckpointError(f"There is a checkpoint {name!r} already; choose another name with --name.")
    if not path.exists() and HUB_ID.fullmatch(source):
        path = fetched(source)
    elif not path.exists() and NAME.fullmatch(source) and not path.suffix:
        raise CheckpointError(
            f"There is no folder {source!r} here; a model on the hub is named by OWNER/NAME, as openai-community/gpt2."
        )
    checkpoint = load_pretrained(path)
    save_checkpoint(checkpoints / name, checkpoint)
    return name, checkpoint


def fetched(model: str) -> Path:
    """The folder of a model on the hub, fetched if it isn't there yet. Raises: CheckpointError if it can't be."""
    try:
        from huggingface_hub import snapshot_download  # takes a second to import, and nothing else needs it

        return Path(snapshot_download(model, allow_patterns=list(WANTED)))
    except Exception as error:  # no network, no such model, no permission, no room
        raise CheckpointError(
            f"{model} is no folder here, and can't be fetched from the hub ({reason(error)}). "
            "Download it elsewhere and name its folder."
        ) from None
