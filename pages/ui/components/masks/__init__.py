"""Shows masks side by side: which keys each query may see.

Shapes: query (row), key (column).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pages.ui.components.assets import custom_component

_mount = custom_component(__file__, "tooltip.css", "masks/masks.css")


@dataclass(frozen=True)
class MaskPanel:
    """One mask over a text from its start, and what to say about it."""

    title: str
    labels: list[str]
    mask: np.ndarray
    """(query, key): True where visible."""
    words: str


def masks(panels: Sequence[MaskPanel], *, key: str) -> None:
    """Show masks beside one another, or below one another where there is no room."""
    _mount(key=key, data=build_payload(panels))


def build_payload(panels: Sequence[MaskPanel]) -> dict[str, Any]:
    """What the browser gets, as masks/panels.js has it.

    Raises: ValueError for a mask that isn't as wide and as high as there are labels.
    """
    for panel in panels:
        if panel.mask.shape != (len(panel.labels),) * 2:
            raise ValueError(f"{len(panel.labels)} labels were given for a mask of {panel.mask.shape}")
    shared = {"offset": 0, "levels": ["visible"], "before": []}
    cells = ["".join(str(int(cell)) for cell in panel.mask.ravel()) for panel in panels]
    return {
        "predictions": None,
        "panels": [vars(panel) | shared | {"mask": mask} for panel, mask in zip(panels, cells, strict=True)],
    }
