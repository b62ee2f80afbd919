"""Asks the API what instruments ask, for the tests of what a browser answers by itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx2

from tests.helpers import MODERN
from tests.tiny_models import ALPHABET, save_encoder, save_newcomer, save_tiny, save_translator
from transformer import Checkpoint, attention_modules, load_checkpoint
from transformer.api.app import create_app
from transformer.api.browser_models import describe
from transformer.api.model_library import Library
from transformer.frontend.live_model import about_model, weights_of
from transformer.inference.circuits import circuits_of

CHECKPOINTS = Path(__file__).resolve().parents[1] / "checkpoints"
SHIPPED = ("stories", "number-words-en-es", "masked-stories", "ladder-3-average", "since-7-grouped")
ODD = ("parallel", "norms of all heads", "sandwich", "alibi", "relative", "all at once")
CHANGED = ("stories", "number-words-en-es", "masked-stories", "all-at-once")
"""Of these, passes in which something is changed are asked for, too."""
TOKENS = 9
QUOTED = '"Oh," he "so'
DRAWN = {"temperature": 0.9, "top_k": 5, "top_p": 0.95, "seed": 7}


def write_answers(folder: Path) -> None:
    """In `folder`, of each model its weights, what a browser knows of it, and questions with the API's answers."""
    folder.mkdir()
    odd = folder / "models"
    odd.mkdir()
    for name in ODD:
        save_tiny(odd, name.replace(" ", "-"), **{"n_heads": 4, **MODERN[name]})
    save_tiny(odd, "bigram", n_layers=0)
    save_tiny(odd, "many", alphabet=ALPHABET + "".join(map(chr, range(0x4E00, 0x4E00 + 600))))
    save_encoder(odd, "encoder-with-head", masked_word_head=True, norm="post", attention_windows=(3, 0))
    save_translator(odd, norm="post")
    save_newcomer(odd)
    for path, names in ((CHECKPOINTS, SHIPPED), (odd, sorted(path.name for path in odd.iterdir()))):
        asyncio.run(_write_all(folder, path, names))


async def _write_all(folder: Path, path: Path, names: Iterable[str]) -> None:
    library = Library(path)
    transport = httpx2.ASGITransport(create_app(lambda: library, limits=lambda app: app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://api") as client:
        for name in names:
            checkpoint, asked = load_checkpoint(path / name), []
            new_words = checkpoint.tokenizer.with_new_words(["Łukasz 👨‍👩‍👧 a\u00adb"]).new_words
            for at, (question, values) in enumerate(_questions(checkpoint, name in CHANGED)):
                values |= {"new_words": new_words} if new_words else {}
                given = {key: value for key, value in values.items() if value is not None}
                response = await client.get(f"/{question}", params={"model": name, **given})
                assert response.status_code == 200, (name, question, values, response.text)
                is_recording = "recording" in response.headers["content-type"]
                asked.append({"path": question, "values": values, "file": f"{name}-{at}", "is_recording": is_recording})
                (folder / f"{name}-{at}").write_bytes(response.content)
            about = about_model(checkpoint.model.config, checkpoint.tokenizer, checkpoint.card)
            (folder / f"{name}.description").write_bytes(describe(checkpoint).to_bytes())
            (folder / f"{name}.weights").write_bytes(weights_of(checkpoint.model))
            (folder / f"{name}.json").write_text(json.dumps({"about": about, "asked": asked}), encoding="utf-8")


def _questions(checkpoint: Checkpoint, is_changed: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    config, card = checkpoint.model.config, checkpoint.card
    count = min(TOKENS, config.context_length)
    tokens, source = [(3 + 5 * at * at) % config.vocab_size for at in range(count)], None
    if card.mask_token_id is not None:
        tokens[2] = tokens[5] = card.mask_token_id
    if config.architecture == "encoder-decoder":
        source = ",".join(str(1 + at % (config.vocab_size - 1)) for at in range(min(4, config.context_length)))
    kinds = attention_modules(config)
    modules = [module for of_kind in kinds.values() for module in of_kind]
    first, last = (modules[0], modules[-1]) if modules else (None, None)
    changes = [None]
    if last and is_changed:
        block, _, module = last.rpartition(".")
        codes = [f"scale~{last}.hook_z~0~~0.0", f"scale~{block}.hook_{module}_out~~4~1.5"]
        codes += [f"weigh~{first}.hook_pattern~0~1~0~0.25~1", f"mean~{first}.hook_v~~"]
        changes += ["!".join(codes), "without~mask~" if config.is_causal else "without~later~"]
    text: dict[str, Any] = {"tokens": ",".join(map(str, tokens)), "source": source}
    length = config.context_length + 3 if config.context_length < 40 else 12
    long = {**text, "tokens": ",".join(str((7 * at + 3) % config.vocab_size) for at in range(length))}
    for code in dict.fromkeys(changes):
        of = {**text, "changes": code}
        yield "outline", of
        yield "checks", of
        for kind in kinds:
            yield "overview", {**of, "kind": kind}
        yield "lens", {**of, "position": 1, "of": "4,2"}
        yield "attribution", {**of, "position": count - 1, "token": 4}
        names = ["logits", "logits[1]", "probabilities[:, -2]", "unembed.weight[1]", "unembed.weight[::-2, 1:-1]"]
        parts = ("hook_z[::-1, 0, :9]", "hook_mask", "hook_pattern[0, 1:3]", "out.weight[:, -2::3]") if last else ()
        yield "tensors", {**of, "names": names + [f"{last}.{part}" for part in parts]}
        yield "predictions", {**of, "first": 1, "last": count - 2}
        turned = ",".join((source or text["tokens"]).split(",")[::-1])
        yield "predictions", {**of, "first": 1, "last": 1, "orders": [turned, source or text["tokens"]]}
        if last:
            yield "ablation", {**of, "position": 1, "token": 4}
            yield "ablation", {**of, "changes": f"scale~{last}.hook_z~0~~0.0", "begin": 2}
            other = ",".join(str((id + (at % 3 == 1)) % config.vocab_size) for at, id in enumerate(tokens))
            yield "patching", {**of, "clean_tokens": other, "clean_source": source, "answer": 7, "against": 3}
        if not config.is_causal:
            yield "masked", of
            continue
        of = {**long, "changes": code}
        yield "scores", {**of, **DRAWN, "first": 2}
        yield "generate", {**of, "temperature": 0, "seed": 5, "max_new_tokens": 6, "attention": last, "head": 0}
        if last:
            yield "rows", {**of, "attention": last, "head": 0, "first": 1, "last": length}
    if last and not config.pad_token_id and not checkpoint.tokenizer.unknown_pieces(QUOTED):
        yield "overview", {"tokens": ",".join(map(str, checkpoint.tokenizer.encode(QUOTED))), "source": source}
    if last:
        in_window = {**text, "changes": f"scale~{last}.hook_z~0~6~-1.0", "begin": 5}
        yield "overview", {**in_window, "kind": next(reversed(kinds))}
        for kind in circuits_of(config, last):
            yield "circuit", {"kind": kind, "attention": last, "head": config.n_heads - 1, "tokens": "3,4"}
