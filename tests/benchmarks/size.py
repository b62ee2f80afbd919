"""Benchmarks a language model of 1.7 billion parameters, stored as bfloat16: opening, the first token, and the export.

The model has the shape of SmolLM2-1.7B and weights drawn at random, the same in every layer, as a folder in Hugging
Face layout of several files (3.4 GB, in the folder for temporary files). The command line opens it, in a process of its
own each time:

- first token: seconds from the start of the process until it has written one token and ended.
- next token: seconds that each further one takes.
- memory: the most that was resident, pages of the mapped files included; and the most of it that was the process's own.
- export (not with --quick): the same, while the model is written again as a folder in Hugging Face layout.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from safetensors.torch import save_file

from transformer import Tokenizer

from .measuring import machine, print_table
from .serving import memory

PROMPT = "Once upon a time"
SHAPE = {
    **{"hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads": 32},
    **{"intermediate_size": 8192, "vocab_size": 49152, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5},
}
MORE_TOKENS = 8
LOOK_EVERY = 0.02
"""Seconds between two looks at a process's memory."""
TARGETS = {"first_token_seconds": 30, "most_megabytes": 4_500}


def run(quick: bool = False) -> dict:
    """Measure, print the table, and return every figure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "random-1.7b"
        write_model(folder, SHAPE)
        one = _measured("generate", folder, PROMPT, "--temperature=0", "--tokens=1")
        many = _measured("generate", folder, PROMPT, "--temperature=0", f"--tokens={1 + MORE_TOKENS}")
        figures = {
            "first_token_seconds": one["seconds"],
            "next_token_seconds": (many["seconds"] - one["seconds"]) / MORE_TOKENS,
            "most_megabytes": max(one["most"], many["most"]),
            "own_megabytes": max(one["own"], many["own"]),
        }
        if not quick:
            export = _measured("export", folder, Path(name) / "out")
            figures |= {"export_seconds": export["seconds"], "export_most_megabytes": export["most"]}
    rows = [(name, f"{value:,.2f}", f"{TARGETS[name]:,}" if name in TARGETS else "") for name, value in figures.items()]
    print_table(("1.7 billion parameters, bfloat16", "measured", "target"), rows)
    return {"machine": machine(), **figures}


def write_model(folder: Path, shape: dict[str, int | float]) -> None:
    """Write a Llama of this shape, a file for each layer and one for the rest."""
    folder.mkdir()
    width, hidden = shape["hidden_size"], shape["intermediate_size"]
    layer = {f"self_attn.{part}_proj.weight": _drawn(width, width) for part in "qkvo"}
    layer |= {f"mlp.{part}_proj.weight": _drawn(hidden, width) for part in ("gate", "up")}
    layer["mlp.down_proj.weight"] = _drawn(width, hidden)
    layer |= {f"{norm}_layernorm.weight": torch.ones(width).bfloat16() for norm in ("input", "post_attention")}
    rest = {"embed_tokens.weight": _drawn(shape["vocab_size"], width), "norm.weight": torch.ones(width).bfloat16()}
    files = [
        {f"layers.{number}.{name}": each for name, each in layer.items()}
        for number in range(shape["num_hidden_layers"])
    ]
    index = {}
    for number, tensors in enumerate([*files, rest]):
        file = f"model-{number:05}.safetensors"
        named = {f"model.{name}": each for name, each in tensors.items()}
        save_file(named, folder / file, {"format": "pt"})
        index |= dict.fromkeys(named, file)
    about = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "tie_word_embeddings": True, **shape}
    (folder / "config.json").write_text(json.dumps(about))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    Tokenizer.of_characters("".join(map(chr, range(32, 127)))).save(folder / "tokenizer.json")


def _drawn(*shape: int) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.bfloat16).normal_(0, 0.02)


def _measured(*arguments: str | Path) -> dict[str, float]:
    """Run the command line; its seconds, and the most memory that it took, in MB."""
    begun, own, most = time.perf_counter(), 0.0, 0.0
    command = [sys.executable, "-m", "transformer", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            now = memory(process.pid)
            own, most = max(own, now.get("RssAnon", 0.0)), max(most, now.get("VmHWM", 0.0))
            time.sleep(LOOK_EVERY)
        seconds = time.perf_counter() - begun
        if process.wait():
            raise RuntimeError(process.stderr.read().strip().splitlines()[-1])
    return {"seconds": seconds, "most": most, "own": own}
