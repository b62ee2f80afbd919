"""Texts of a visitor's or a model's, made safe to stand in a sentence that is Markdown."""

from __future__ import annotations

from transformer.tokenizers import printable


def code(text: str, longest: int | None = None) -> str:
    """A text as Markdown's code, in which nothing is read as Markdown; shortened to `longest` characters."""
    shown = printable(text if longest is None or len(text) <= longest else f"{text[: longest - 1]}…")
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"
