"""The activation cache: the tensors of one forward pass, by hook point."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping

from torch import Tensor

ON_REQUEST = ("attn.hook_result",)  # cross_attn.hook_result among them
"""Endings of points that cost too much to compute unless someone asks for them by name."""


class ActivationCache(Mapping[str, Tensor]):
    """The tensors that one forward pass recorded, by hook point, in the order they were computed.

    Read-only, and detached from the graph. `cache["pattern", 0]` is short for the one recorded point of block
    0 whose name ends in `hook_pattern`; where several do, a third part tells them apart:
    `cache["scale", 0, "ln1"]`. Layer −1 is the last of the model.

    depths: how many blocks each stack of the model has, by what its points' names begin with; without it, as many as
        have recorded something.
    """

    def __init__(self, tensors: Mapping[str, Tensor], depths: Mapping[str, int] | None = None) -> None:
        self._tensors = dict(tensors)
        self.depths = depths_of(self._tensors) if depths is None else depths

    def __getitem__(self, key: str | tuple[str, int] | tuple[str, int, str]) -> Tensor:
        match key:
            case str():
                if (name := key if key in self._tensors else f"hook_{key}") in self._tensors:
                    return self._tensors[name]
                raise KeyError(_missing(key) or f"{key!r} was not recorded.{suggested(key, self._tensors)}")
            case (str(), int()) | (str(), int(), str()):
                return self._tensors[self._resolve(*key)]
        raise KeyError(
            f"{key!r} is no name; ask for cache['blocks.0.attn.hook_pattern'], or, for short, cache['pattern', 0]."
        )

    def _resolve(self, short: str, layer: int, module: str = "") -> str:
        blocks = (f"{stack}blocks.{layer if layer >= 0 else depth + layer}" for stack, depth in self.depths.items())
        pattern = re.compile(rf"({'|'.join(map(re.escape, blocks))})\.(.*\.)?(hook_)?{re.escape(short)}")
        names = [name for name in self._tensors if pattern.fullmatch(name) and _has_parts(name, module)]
        wanted = (short, layer, module) if module else (short, layer)
        if not names:
            raise KeyError(_missing(short) or f"{wanted!r} matches nothing that was recorded.")
        if len(names) > 1:
            raise KeyError(f"{wanted!r} may mean {', '.join(names)}; say which as a third part.")
        return names[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        return f"ActivationCache({len(self)} tensors: {', '.join(self._tensors)})"


def depths_of(names: Iterable[str]) -> dict[str, int]:
    """How many blocks each stack has, by what the names of its points begin with."""
    found: dict[str, int] = {}
    for name in names:
        stack, of_block, rest = name.partition("blocks.")
        if of_block:
            found[stack] = max(found.get(stack, 0), int(rest.partition(".")[0]) + 1)
    return found


def suggested(name: str, known: Iterable[str]) -> str:
    """A question after what may have been meant by a name that is none of those known; empty if nothing comes near."""
    known = sorted(known)
    short = [each for each in known if each.endswith(f".hook_{name.rpartition('.')[2].removeprefix('hook_')}")]
    close = difflib.get_close_matches(name, known, n=3) or short[:1]
    return f" Did you mean {' or '.join(close)}?" if close else ""


def _missing(name: str) -> str:
    """Why a point that is recorded only on request was not; empty for any other."""
    if not f"attn.hook_{name.rpartition('.')[2].removeprefix('hook_')}".endswith(ON_REQUEST):
        return ""
    return f"{name!r} is recorded only on request, because it is large: give its full name in names_filter."


def _has_parts(name: str, module: str) -> bool:
    """True if the dotted `module` stands in the dotted `name` as whole parts."""
    return not module or f".{module}." in f".{name}."
