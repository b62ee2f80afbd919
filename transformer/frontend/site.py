"""Writes a static site: pages that compute shipped models in the visitor's browser, for any web host.

Addresses are relative, so it works below any path. The first visit keeps what the site is made of; from then on it
opens without a network, and each model that was picked once does.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ..checkpoints.checkpoint import Checkpoint
from . import FOLDER, STYLES, sheets
from .html_page import in_one_file
from .html_scripts import as_json, script_in_html
from .live_model import described, in_one_element, listed, weights_of
from .module_bundle import bundle
from .page_titles import SENTENCES
from .startup import SCRIPT, WITHOUT_SCRIPTS
from .static_image import png

PAGES = {page: sentence for page, sentence in SENTENCES.items() if page != "Train"}
"""The pages, each with a sentence on what it shows; nothing is trained in a browser."""
WITHOUT_MODEL = ("Positions",)
"""Views that compute with no model."""
MOST_BYTES = 30_000_000
"""Of a whole site. That of all shipped models and lessons has 25.7 MB; a first visit fetches 3.4 of them, and the model
that is looked at, 7.2 MB at most."""
MOST_OF_FILE = 10_000_000
"""Bytes of a lesson as one file."""
FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · HeadsUp</title>
{head}
</head>
<body>
{without_scripts}
{body}
</body>
</html>
"""
LINKS = """<script src="start.js"{models}></script>
<base href="{base}">
<link rel="manifest" href="manifest.webmanifest">
<link rel="icon" href="icon-192.png">
<link rel="stylesheet" href="style.css">
<script defer src="scripts/startup_errors.js"></script>
<script type="module" src="scripts/{script}"></script>"""
MODELS = ' data-first="{first}" data-otherwise="{otherwise}"'
"""For start.js, which has the browser fetch one of them while the script that will ask for it is on its way."""
DEFAULTS = "stories", "shakespeare"
"""The model of an address that says nothing, and of one that names none."""
BODY = """<header class="site-head"><b>HeadsUp</b><nav data-part="pages" aria-label="Pages">{links}</nav></header>
<main class="site-main">
{main}
</main>
<script type="application/json" id="about">{about}</script>"""
SHELL = '<div data-part="shell"></div>'
PROBLEM = '<p class="problem" data-part="problem" role="alert" hidden></p>'


def write_site(folder: Path, models: Mapping[str, Checkpoint], lessons: Sequence[Mapping[str, Any]] = ()) -> int:
    """Write a site; returns its bytes.

    models: by name. lessons: as `pages.ui` makes them, JSON-ready; one
    without steps is listed with its note, which says why.
    Raises: ValueError for a folder that holds something else, and where the site would be too large.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / "manifest.webmanifest").is_file():
        raise ValueError(f"{folder} holds other files; name a new folder, or an empty one, for the site.")
    files: dict[str, bytes] = {}
    catalogue = []
    for name, checkpoint in models.items():
        catalogue.append(listed(name, checkpoint.model.config, checkpoint.card))
        files[f"models/{name}/model.json"] = _json(described(checkpoint))
        files[f"models/{name}/model.safetensors"] = weights_of(checkpoint.model)
    if not catalogue:
        raise ValueError("There is no usable checkpoint to make a site of.")
    frame = {
        "style.css": style().encode(),
        "scripts/startup_errors.js": SCRIPT.encode(),
        "scripts/worker.js": bundle(FOLDER / "engine" / "worker.js").encode(),
        "manifest.webmanifest": _json(_manifest()),
        **{f"icon-{size}.png": icon(size) for size in (192, 512)},
    }
    pages = [page for page in PAGES if page != "Learn" or lessons]
    start = (FOLDER / "site" / "start.js").read_text(encoding="utf-8")
    for page in pages:
        frame[f"scripts/{_script(page)}"] = bundle(FOLDER / "site" / _script(page)).encode()
        for place, base in (("", "./"), (f"{_file(page)}/", "../")):
            if place or page == "Generate":
                frame[f"{place}index.html"] = _page(page, pages, base, catalogue, lessons).encode()
                frame[f"{place}start.js"] = f'const ROOT = "{base}";\n{start}'.encode()
    for lesson in lessons:
        if lesson["steps"]:
            frame[f"lessons/{lesson['name']}.json"] = _in_files(_json(lesson), frame.__setitem__)
    digest = hashlib.blake2b(digest_size=8)
    for name, data in sorted({**files, **frame}.items()):
        digest.update(b"%s\0%d\0%s" % (name.encode(), len(data), data))
    kept = sorted(name.removesuffix("index.html") or "./" for name in frame)
    site = json.dumps({"version": digest.hexdigest(), "files": kept})
    script = (FOLDER / "site" / "service_worker.js").read_text(encoding="utf-8")
    files |= frame | {"service_worker.js": f"const SITE = {site};\n{script}".encode()}
    size = sum(map(len, files.values()))
    if size > MOST_BYTES:
        raise ValueError(f"The site would take {size / 1e6:.1f} MB, and {MOST_BYTES / 1e6:.0f} MB is the most.")
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return size


def lesson_page(lesson: Mapping[str, Any], models: Mapping[str, Checkpoint]) -> str:
    """A lesson as one HTML file that needs no network: its models, and all that computes them, lie in it.

    models: by name, those that its views show.
    Raises: ValueError where the file would be too large.
    """
    catalogue = [listed(name, each.model.config, each.card) for name, each in models.items()]
    about = as_json({"lesson": lesson, "models": catalogue})
    elements = {"about": about, "worker": bundle(FOLDER / "engine" / "worker.js")}
    elements |= {f"model-{name}": in_one_element(each) for name, each in models.items()}
    main = f'{WITHOUT_SCRIPTS}\n<main class="site-main">{PROBLEM}<div data-part="lesson"></div></main>'
    script = script_in_html(bundle(FOLDER / "site" / "learn.js"))
    page = in_one_file(f"{lesson['name']} · HeadsUp", style(), script, main, elements)
    if len(page.encode()) > MOST_OF_FILE:
        size, most = len(page) / 1e6, MOST_OF_FILE / 1e6
        raise ValueError(f"The lesson would take {size:.1f} MB as one file, and {most:.0f} MB is the most.")
    return page


def handout_page(title: str, lesson: Mapping[str, Any], style: str) -> str:
    """A lesson on paper, as one HTML file that needs no network. title: a text. lesson: its document."""
    script = script_in_html(bundle(FOLDER / "lessons" / "handout_page.js"))
    main = f'{WITHOUT_SCRIPTS}\n{PROBLEM}<main class="handout" data-part="handout"></main>'
    return in_one_file(title, f"{style}\n{sheets('lessons/handout.css')}", script, main, {"about": as_json(lesson)})


def style() -> str:
    """The style sheet of all pages."""
    return sheets("type_scale.css", *STYLES, "site/site.css", "lessons/handout.css", "paper.css")


def icon(size: int) -> bytes:
    """A PNG of an attention pattern: below the diagonal, brighter means more weight."""
    weights = [[1.0], [0.35, 0.8], [0.9, 0.3, 0.5], [0.25, 0.45, 1.0, 0.6]]
    side, gap = size * 3 // 4 // len(weights), size // 32
    begin = (size - side * len(weights)) // 2
    picture = np.full((size, size, 3), (14, 17, 23), dtype=np.uint8)
    for row, of_row in enumerate(weights):
        for column, weight in enumerate(of_row):
            cell = (slice(begin + at * side + gap, begin + (at + 1) * side - gap) for at in (row, column))
            picture[*cell] = np.rint(27 + weight * (np.array((124, 196, 238)) - 27))
    return png(picture)


def _file(page: str) -> str:
    """A page's folder, as in the app its address."""
    return page.replace(" ", "_")


def _script(page: str) -> str:
    return f"{_file(page).lower()}.js"


def _page(
    page: str, pages: Sequence[str], base: str, listed: list[dict[str, Any]], lessons: Sequence[Mapping[str, Any]]
) -> str:
    links = "".join(
        f'<a href="{_file(name)}/"{" aria-current=page" if name == page else ""}>{name}</a>' for name in pages
    )
    cards = [
        {name: lesson[name] for name in ("name", "title", "asks", "minutes", "aims")}
        | {"asked": [number for number, step in enumerate(lesson["steps"]) if step["question"]]}
        | ({} if lesson["steps"] else {"missing": lesson["note"]})
        for lesson in lessons
    ]
    first, otherwise = (next((m["name"] for m in listed if m["name"] == name), listed[0]["name"]) for name in DEFAULTS)
    shown = {"title": page, "sentence": PAGES[page]}
    about = {"models": listed} | ({"lessons": cards} if page == "Learn" else {"page": shown, "first": first})
    main = [PROBLEM, '<div data-part="lesson"></div>'] if page == "Learn" else [PROBLEM, SHELL]
    body = BODY.format(links=links, main="\n".join(main), about=as_json(about))
    needs_model = page not in ("Learn", *WITHOUT_MODEL)
    models = MODELS.format(first=escape(first), otherwise=escape(otherwise)) if needs_model else ""
    head = LINKS.format(base=base, script=_script(page), models=models)
    return FRAME.format(without_scripts=WITHOUT_SCRIPTS, title=escape(page), head=head, body=body)


def _in_files(lesson: bytes, add: Callable[[str, bytes], None]) -> bytes:
    """A lesson whose pictures are files, for hosts that allow no others. add: gets the name and the bytes of each."""

    def file_of(found: re.Match[bytes]) -> bytes:
        picture = base64.b64decode(found[1])
        name = f"lessons/{hashlib.blake2b(picture, digest_size=8).hexdigest()}.png"
        add(name, picture)
        return name.encode()

    return re.sub(rb'(?<=src=\\")data:image/png;base64,([\w+/=]+)', file_of, lesson)


def _manifest() -> dict[str, Any]:
    icons = [{"src": f"icon-{size}.png", "sizes": f"{size}x{size}", "type": "image/png"} for size in (192, 512)]
    colours = {"background_color": "#0e1117", "theme_color": "#0072b2"}
    return {"name": "HeadsUp", "short_name": "HeadsUp", "start_url": "./", "display": "standalone", **colours} | {
        "description": PAGES["Generate"],
        "icons": icons,
    }


def _json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
