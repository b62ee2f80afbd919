"""Escapes texts for Markdown, and puts counts and architectures into words."""

import re

from transformer import ModelConfig
from transformer.data.token_text import printable

POSITIONS = {
    "sinusoidal": "sinusoidal positions",
    "learned": "learned positions",
    "rotary": "rotary positions",
    "alibi": "ALiBi positions",
    "relative": "relative positions",
    "none": "no positions",
}
JOINER = "\u2060"
MARKED = re.compile(r"(?P<ticks>`+) ?(?P<code>.+?) ?(?P=ticks)|\\(?P<escaped>[!-/:-@\[-`{-~])")
BETWEEN_WORDS = re.compile(r"(?<=\S) (?=\S)")
FOUND_LATER = re.compile(r"(?<=[:@])(?=\S)|(?<=www)(?=\.)|(?<=[-<>~=])(?=[-<>=])", re.IGNORECASE)
"""Where to break `http://`, `a@b.c`, `:material/info:`, `www.`, `->`, `>=`."""


def code(text: str, longest: int | None = None) -> str:
    """A text as Markdown's code, in which nothing is read as Markdown; shortened to `longest` characters."""
    return _fenced(printable(_cut(text, longest)))


def passage(text: str) -> str:
    """A text of several words as Markdown's code: a single space between two of them stays one, so that it can be read.

    Every other space, and each new line, is shown as a sign, as `code` does.
    """
    return _fenced(" ".join(printable(piece) for piece in BETWEEN_WORDS.split(text)))


def plain(text: str, longest: int | None = None) -> str:
    """A text of which Streamlit reads nothing as Markdown: links and files must not bring pictures from elsewhere.

    Addresses, icons' names and arrows are looked for after Markdown has been read, when no backslash is left. An
    invisible sign inside, which joins what stands beside it, keeps them from being found.
    """
    broken = FOUND_LATER.sub(JOINER, _cut(" ".join(text.split()), longest))
    return "".join(f"\\{c}" if c in "\\`*_{}[]()#+-.!|$~:<>&=^" else c for c in broken)


def unmarked(markdown: str) -> str:
    """The text in what `plain`, `code` and `passage` have made, for where no Markdown is read."""
    return MARKED.sub(lambda match: match["code"] or match["escaped"], markdown).replace(JOINER, "")


def architecture(config: ModelConfig) -> str:
    """A model's shape: `2 layers × 4 heads, 64 wide, rotary positions, context 32`."""
    layers = counted(config.n_layers, "layer" if config.is_causal else "encoder layer")
    if config.architecture == "encoder-decoder":
        layers = f"{counted(config.n_encoder_layers, 'encoder layer')} + {counted(config.n_layers, 'decoder layer')}"
    if config.n_layers:
        layers += f" × {counted(config.n_heads, 'head')}"
    return f"{layers}, {config.d_model} wide, {POSITIONS[config.positions]}, context {config.context_length}"


def counted(number: int, what: str) -> str:
    """So many of something: `no layers`, `1 layer`, `2,000 layers`."""
    return f"{f'{number:,}' if number else 'no'} {what}{'' if number == 1 else 's'}"


def _cut(text: str, longest: int | None) -> str:
    return text if longest is None or len(text) <= longest else f"{text[: longest - 1]}…"


def _fenced(shown: str) -> str:
    ticks = re.findall("`+", shown)
    fence = "`" * (max(map(len, ticks), default=0) + 1)  # no run of backticks inside ends it
    return f"{fence} {shown} {fence}" if ticks or not shown else f"`{shown}`"
