"""Writes checkpoints of tiny models with random weights, for tests of the app."""

from collections.abc import Sequence
from pathlib import Path

import tokenizers

from transformer import TASKS, Checkpoint, ModelCard, ModelConfig, Tokenizer, build_model, save_checkpoint
from transformer.data.tokenizers import BYTE_LETTERS

ALPHABET = "\n !',.:;?<>/()`$*_#&-=\"0123456789" + "".join(map(chr, [*range(65, 91), *range(97, 123)]))
CONTEXT = 16
EXAMPLES = ("ROMEO:\nBut, soft", "To be, or not", "KING:\n")


def _save(folder: Path, name: str, tokenizer: Tokenizer, shape: dict, seed: int = 0, **card: object) -> Checkpoint:
    """Write a checkpoint of random weights: 2 heads, d_model 16, unless the shape says more."""
    config = ModelConfig(vocab_size=tokenizer.vocab_size, **{"n_layers": 2, "n_heads": 2, "d_model": 16, **shape})
    model = build_model(config, seed=seed).eval()
    card = {"summary": "Guesses.", "group": "Tasks", "parameters": 1000, **card}
    card["parameters"] = card["parameters"] or model.parameter_count()
    checkpoint = Checkpoint(model, tokenizer, ModelCard(**card))
    save_checkpoint(folder / name, checkpoint)
    return checkpoint


def save_tiny(
    folder: Path,
    name: str,
    *,
    title: str = "",
    group: str = "",
    alphabet: str = ALPHABET,
    seed: int = 0,
    examples: Sequence[str] = EXAMPLES,
    **changes: object,
) -> Checkpoint:
    """Write the checkpoint `folder/name`: 2 layers × 2 heads, d_model 16, context 16, unless `changes` says more."""
    positions = "none" if changes.get("attention") == "uniform" else "rotary"
    shape = {"context_length": CONTEXT, "positions": positions, **changes}
    card = {"title": title or name, "summary": "Writes at random.", "group": group, "examples": list(examples)}
    return _save(folder, name, Tokenizer.of_characters(alphabet), shape, seed, parameters=0, **card)


def save_encoder(folder: Path, name: str = "encoder", *, seed: int = 0, **changes: object) -> Checkpoint:
    """Write a model that fills masks, at random weights; its alphabet and size are those of `save_tiny`."""
    tokenizer = Tokenizer.of_characters(ALPHABET, ("[mask]",))
    shape = {"architecture": "encoder-only", "context_length": CONTEXT, "positions": "rotary", **changes}
    card = {"title": "Encoder", "examples": ["To [mask]e [mask]r"], "mask_token_id": tokenizer.special_id("[mask]")}
    return _save(folder, name, tokenizer, shape, seed, **card)


def _of_task(name: str, title: str, *examples: str) -> dict[str, object]:
    """The card of a model that writes the answers of a task."""
    special = TASKS[name].tokenizer.special_id
    ends = {"start_token_id": special("[start]"), "end_token_id": special("[end]")}
    return {"title": title, "task": name, "examples": list(examples), **ends}


def written(text: str) -> str:
    """A text as a link has what a model of `ALPHABET` has written."""
    return ".".join(map(str, Tokenizer.of_characters(ALPHABET).encode(text)))


def save_translator(folder: Path, name: str = "translator", *, seed: int = 0, **changes: object) -> Checkpoint:
    """Write an encoder–decoder for number words, at random weights: 2 encoder and 1 decoder layers unless `changes`."""
    tokenizer = TASKS["number-words"].tokenizer
    shape = {"architecture": "encoder-decoder", "n_layers": 1, "n_encoder_layers": 2, "context_length": 12, **changes}
    card = _of_task("number-words", "Translator", "two hundred and five", "forty-two")
    return _save(folder, name, tokenizer, {"pad_token_id": tokenizer.special_id("[pad]"), **shape}, seed, **card)


def save_reader(folder: Path, name: str = "reader") -> Checkpoint:
    """Write a decoder-only model for stories, word by word, at random weights."""
    task = TASKS["stories"]
    shape = {"context_length": task.longest, "positions": "rotary", "pad_token_id": task.tokenizer.special_id("[pad]")}
    card = _of_task("stories", "Reader", "Mary took the ball. Who has the ball?")
    return _save(folder, name, task.tokenizer, shape, **card)


def save_newcomer(folder: Path, name: str = "newcomer", **changes: object) -> Checkpoint:
    """Write a model of a few words that reads any others as new ones, at random weights: a decoder unless `changes`."""
    words = [
        "Mary",
        "She",
        "Tom",
        "gave",
        "took",
        "went",
        "to",
        "the",
        "ball",
        "park",
        "Where",
        "Who",
        "is",
        "has",
        ".",
        "?",
    ]
    masks = ("[mask]",) if changes.get("architecture") == "encoder-only" else ()
    tokenizer = Tokenizer.of_sentences(words, ("[pad]", *masks), new_words=8)
    shape = {"context_length": 48, "positions": "rotary", "pad_token_id": tokenizer.special_id("[pad]"), **changes}
    card = {"title": "Newcomer", "examples": ["Mary took the ball. Where is the ball?"]}
    if masks:
        card |= {"examples": ["Mary took the [mask]."], "mask_token_id": tokenizer.special_id("[mask]")}
    return _save(folder, name, tokenizer, shape, **card)


def save_pair(folder: Path, **changes: object) -> dict[str, Checkpoint]:
    """Tiny models under the names of the shipped ones: rotary positions in one, the sinusoidal table in the other."""
    spanish = ALPHABET + "áéíóúñ¿¡"
    return {
        "shakespeare": save_tiny(folder, "shakespeare", title="Shakespeare", seed=1, **changes),
        "martin-fierro": save_tiny(
            folder,
            "martin-fierro",
            title="Martín Fierro",
            alphabet=spanish,
            seed=2,
            positions="sinusoidal",
            n_layers=3,
            n_heads=4,
            examples=("Aquí me pongo", "Yo no tengo\n"),
            **changes,
        ),
    }


def truncate(folder: Path, name: str) -> None:
    """Damage a checkpoint as a broken download does: the last half of its weights is missing."""
    weights = folder / name / "model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[: len(content) // 2])


CHAT_TOKENS = ("<|im_start|>", "<|im_end|>")


def byte_tokenizer(special: Sequence[str] = CHAT_TOKENS, *, begins: bool = False) -> Tokenizer:
    """Byte-level BPE of 256 bytes and two merges, and special tokens after them.

    begins: whether texts begin with the first of them, as Llama's do.
    """
    letters = sorted(BYTE_LETTERS, key=BYTE_LETTERS.get)
    vocabulary = {letter: place for place, letter in enumerate([*letters, "Ġt", "he", *special])}
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, [("Ġ", "t"), ("h", "e")]))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = tokenizers.decoders.ByteLevel()
    backend.add_special_tokens([tokenizers.AddedToken(token, special=True, normalized=False) for token in special])
    if begins:
        first = (special[0], vocabulary[special[0]])
        backend.post_processor = tokenizers.processors.TemplateProcessing(
            single=[first[0], "$A"], special_tokens=[first]
        )
    return Tokenizer(backend)


def save_chatty(folder: Path, name: str = "chatty", *, begins: bool = False, **changes: object) -> Checkpoint:
    """Write a model of the shape of Llama, of bytes, at random weights, that reads its prompts in a chat template.

    begins: as `byte_tokenizer` has it.
    """
    tokenizer = byte_tokenizer(begins=begins)
    shape = {
        **{"n_layers": 3, "n_heads": 4, "n_kv_heads": 2, "d_model": 32, "context_length": 96, "positions": "rotary"},
        **{"rotary_pairs": "halves", "norm_kind": "rms", "mlp_gate": True, "activation": "silu", "mlp_bias": False},
        **{"attention_bias": False, "tie_embeddings": True, **changes},
    }
    card = {"title": "Chatty", "summary": "Answers at random.", "group": "Imported", "examples": ["Who is the cat?"]}
    card["chat"] = {"before": "<|im_start|>user\n", "after": "<|im_end|>\n<|im_start|>assistant\n"}
    end = tokenizer.special_id("<|im_end|>")
    return _save(folder, name, tokenizer, shape, 3, parameters=0, end_token_id=end, **card)
