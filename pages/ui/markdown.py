"""What pages say: texts of a visitor's or a model's, made safe for Markdown, and architectures."""

from __future__ import annotations

import re

from transformer import ModelConfig
from transformer.data.tokenizers import printable

POSITIONS = {
    "sinusoidal": "sinusoidal positions",
    "learned": "learned positions",
    "rotary": "rotary positions",
    "none": "no positions",
}


def code(text: str, longest: int | None = None) -> str:
    """A text as Markdown's code, in which nothing is read as Markdown; shortened to `longest` characters."""
    shown = printable(text if longest is None or len(text) <= longest else f"{text[: longest - 1]}…")
    ticks = re.findall("`+", shown)
    fence = "`" * (max(map(len, ticks), default=0) + 1)  # no run of backticks inside ends it
    return f"{fence} {shown} {fence}" if ticks or not shown else f"`{shown}`"


def plain(text: str, longest: int | None = None) -> str:
    """A text of which Streamlit reads nothing as Markdown: links and files must not bring pictures from elsewhere."""
    words = " ".join(text.split())
    shown = words if longest is None or len(words) <= longest else f"{words[: longest - 1]}…"
    return "".join(f"\\{c}" if c in "\\`*_{}[]()#+-.!|$~:<>" else c for c in shown)


def architecture(config: ModelConfig) -> str:
    """A model's shape: `2 layers × 4 heads, 64 wide, rotary positions, context 32`."""
    layers = _counted(config.n_layers, "layer")
    if config.architecture == "encoder-decoder":
        layers = f"{_counted(config.n_encoder_layers, 'encoder layer')} + {_counted(config.n_layers, 'decoder layer')}"
    if config.n_layers:
        layers += f" × {_counted(config.n_heads, 'head')}"
    return f"{layers}, {config.d_model} wide, {POSITIONS[config.positions]}, context {config.context_length}"


def _counted(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"
