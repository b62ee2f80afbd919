"""Loads pretrained weights, from a folder in Hugging Face layout or a .gguf file, as a checkpoint.

Files are untrusted: it never reads pickles or code in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..config import ModelConfig
from .checkpoint import Checkpoint
from .families import FAMILIES
from .families.family import Family, Fields
from .families.unreadable import REASONS
from .file_checks import checked, read_json
from .folder import CheckpointError, reason
from .pretrained_model import Pretrained, check_vocabulary, config_of, token_ids
from .safetensors_folder import SafetensorsFolder
from .tokenizer_files import read_tokenizer

RULES = ("num_beams", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "repetition_penalty", "min_length")
"""Generation settings that change which token is likeliest."""


def load_pretrained(path: str | Path) -> Checkpoint:
    """A checkpoint from a folder in Hugging Face layout, or from a `.gguf` file; nothing is written.

    Raises: CheckpointError, saying what would do, for anything else, an unknown family, or files that don't fit.
    """
    path = Path(path)
    try:
        return open_pretrained(path).checkpoint()
    except CheckpointError as error:  # it may quote anything from a file
        said = "".join(each if each.isprintable() else "�" for each in str(error))
        raise CheckpointError(f"{path.name}: {said}") from None
    except Exception as error:  # a file vanished or changed, or a library raised
        raise CheckpointError(f"{path.name}: it can't be read ({reason(error)}).") from None


def open_pretrained(path: Path) -> Pretrained:
    """The checked content of the files, without their weights."""
    if is_gguf(path):
        from .gguf_file import open_gguf  # imported here, since only GGUF files need its package

        return open_gguf(path)
    if not path.is_dir():
        raise CheckpointError("There is no such folder with a config.json, and no such .gguf file.")
    if (path / "config.json").is_file():
        return _folder(path)
    found = sorted(each for each in path.iterdir() if is_gguf(each))
    if len(found) > 1:
        raise CheckpointError(f"It has {len(found)} .gguf files; name one of them, such as {found[0].name}.")
    if not found:
        raise CheckpointError("config.json is missing; a folder in Hugging Face layout has one.")
    return open_pretrained(found[0])


def is_gguf(path: Path) -> bool:
    """Whether this is the path of an existing `.gguf` file."""
    return path.suffix.lower() == ".gguf" and path.is_file()


def _folder(path: Path) -> Pretrained:
    fields = read_json(path / "config.json")
    family = family_of(fields.get("model_type"))
    _check_use(family, fields)
    config = config_of(family, fields)
    theirs = read_tokenizer(path)
    check_vocabulary(theirs.tokenizer, config)
    settings = path / "generation_config.json"
    of_writing = read_json(settings) if settings.is_file() else {}
    said = {**fields, **{name: value for name, value in of_writing.items() if value is not None}}
    ends = said.get("eos_token_id") or fields.get("eos_token_id")
    ends = token_ids(ends if isinstance(ends, list) else [ends], config)
    return Pretrained(
        path.name,
        family,
        config,
        Fields(fields),
        SafetensorsFolder(path, family.architecture),
        theirs,
        ends,
        _template(path),
        **(_about_writing(said, config) if config.architecture == "encoder-decoder" else {}),
    )


def _about_writing(said: Mapping[str, Any], config: ModelConfig) -> dict[str, Any]:
    """A decoder's start tokens, the tokens that it must never write, and a sentence on settings that aren't followed.

    Raises: CheckpointError if the files name no start token.
    """
    start = token_ids([said.get("decoder_start_token_id"), said.get("bos_token_id")], config)[:1]
    if not start:
        raise CheckpointError("config.json lacks decoder_start_token_id, which its decoder begins with.")
    forced = said.get("forced_bos_token_id")
    if forced is None and said.get("force_bos_token_to_be_generated"):
        forced = said.get("bos_token_id")
    banned = said.get("bad_words_ids") or []
    never = [each[0] for each in banned if isinstance(each, list) and len(each) == 1]
    rules = [f"{name} {said[name]}" for name in RULES if isinstance(said.get(name), int | float) and said[name] > 1]
    return {
        "start_token_ids": (*start, *token_ids([forced], config)),
        "never_token_ids": token_ids(never, config) if config.unembed_bias else (),
        "notes": (f"Its settings for generation are ignored here: {', '.join(rules)}.",) if rules else (),
    }


def _check_use(family: Family, fields: Mapping[str, Any]) -> None:
    """Raise CheckpointError for a model that isn't a language model, or whose weights are quantised."""
    for name in fields.get("architectures") or ():
        if "For" in str(name) and name not in (family.architecture, *family.also):
            raise CheckpointError(f"It is a {str(name)[:60]}; of this family, a {family.architecture} can be read.")
    if packed := fields.get("quantization_config"):
        how = packed.get("quant_method") if isinstance(packed, Mapping) else None
        raise CheckpointError(
            f"Its weights are quantised ({str(how)[:20]}); name the model that they were made of, or a .gguf file."
        )


def _template(path: Path) -> object:
    """The chat template of a folder, from its own file or the tokenizer's settings."""
    if (own := path / "chat_template.jinja").is_file():
        return checked(own).read_text(encoding="utf-8-sig", errors="replace")
    settings = path / "tokenizer_config.json"
    found = read_json(settings).get("chat_template") if settings.is_file() else None
    if isinstance(found, list):  # several named ones
        named = {each.get("name"): each.get("template") for each in found if isinstance(each, dict)}
        found = named.get("default")
    return found


def family_of(model_type: object) -> Family:
    """The family that a file names. Raises: CheckpointError with the reason, or with the known ones."""
    if isinstance(model_type, str) and model_type not in FAMILIES and model_type in REASONS:
        raise CheckpointError(f"Models of the type {model_type!r} can't be read: {REASONS[model_type]}.")
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        known = ", ".join(f"{family.name} ({name})" for name, family in FAMILIES.items())
        raise CheckpointError(f"Models of the type {str(model_type)[:60]!r} can't be read; known are {known}.")
    return FAMILIES[model_type]
