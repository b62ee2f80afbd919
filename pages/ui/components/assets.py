"""Loads the files of components, and serves their scripts.

These are a module and its parts, at an address with their content's hash; a session is sent no more than where that is.
"""

import dataclasses
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from streamlit.components.v2 import component

from pages.ui import glossary
from transformer import frontend
from transformer.api.frontend_modules import FrontendModules

MOUNTED_AT = "modules"
"""Where the app serves them, relative to its pages."""
HERE = Path(__file__).parent
GLOSSARY = "pages/ui/glossary.json"
WORKER = "transformer/frontend/engine/worker_bundle.js"
"""What computes models in a browser: one file instead of thirty, which each visitor would ask for."""
COMPONENTS = "transformer/frontend/components.js"
"""What every page mounts, and what several components need; the others' scripts are fetched when they are mounted, from
the same folder. Scripts find the worker from there, too: the folder is the frontend's."""
VIEWS = {"Generate": ("generation", "filling")}
"""The folders of a page's views in the frontend, where they aren't called like the page."""
SHELL_STYLE = "pages/ui/components/shell.css"
"""The style sheet of the shell and of all views."""
PRIVATE_LINK = "pages/ui/components/room_membership/private_link.js"
LOADER = """const loaded = import(new URL(%s, document.baseURI)).then(({ mountOf }) => mountOf(%s));
export default function (component) {
  const find = (part) => component.parentElement.querySelector(`[data-part=${part}]`);
  const data = Array.isArray(component.data) ? component.data[0] : component.data;
  for (const [part, words] of Object.entries(data?.waiting ?? {})) {
    if (find(part)) find(part).textContent = words;
  }
  loaded.then((mount) => mount({ ...component, data }), () => {
    const place = find("waiting_for") ?? find("root");
    if (place) place.textContent = "This part of the page could not be loaded. Reload the page.";
    find("until_styled")?.remove();
  });
}
"""
"""Mounts a component. `waiting` of its data is what its markup says until then, by part; its part `until_styled` hides
that as long as the style sheet is on its way."""


def glossary_terms() -> list[dict[str, Any]]:
    """The glossary as the browser gets it: `words` are all words for a term, its name first."""
    return [{**dataclasses.asdict(term), "words": [term.name, *term.others]} for term in glossary.entries()]


def reader(module_file: str) -> Callable[[str], str]:
    """A function that returns the text of a file beside a module. module_file: the module's `__file__`."""
    folder = Path(module_file).parent
    return lambda name: (folder / name).read_text(encoding="utf-8")


def style(module_file: str, *names: str, instruments: Sequence[str] = ()) -> str:
    """One style sheet: the theme, the scale, the frontend's of these names, then those beside a Python module."""
    own = map(reader(module_file), names)
    sheets = frontend.sheets("type_scale.css", *instruments)
    return without_comments("\n".join([reader(__file__)("theme.css"), sheets, *own]))


def without_comments(css: str) -> str:
    """A style sheet as it is sent: a component's own comes again with every page that a browser opens."""
    return re.sub(r"/\*.*?\*/\s*", "", css, flags=re.DOTALL)


_FOLDER, _, _NAME = COMPONENTS.rpartition("/")
_PARTS = frontend.bundle_in_parts(HERE / "components.js", _NAME)
MODULES = FrontendModules(
    {
        **{f"{_FOLDER}/{name}": text.encode() for name, text in _PARTS.items()},
        GLOSSARY: json.dumps(glossary_terms(), ensure_ascii=False).encode(),
        PRIVATE_LINK: frontend.bundle(HERE / "room_membership" / "private_link.js").encode(),
        WORKER: frontend.bundle(frontend.FOLDER / "engine" / "worker.js").encode(),
        SHELL_STYLE: style(__file__, "shell.css", instruments=frontend.STYLES).encode(),
    }
)


def address(path: str) -> str:
    """Where a file is served, relative to the app's pages. Raises: KeyError if there is no such file."""
    return f"{MOUNTED_AT}/{MODULES.address(path)}"


def first_scripts(page: str) -> list[str]:
    """The addresses of the scripts that a page needs first; a browser fetches them while the page is prepared.

    page: its title.
    """
    views = VIEWS.get(page, (page.lower().replace(" ", "_"),))
    parts = [f"{_FOLDER}/{view}_view.js" for view in views if f"{view}_view.js" in _PARTS]
    return [address(path) for path in (COMPONENTS, *parts)]


def custom_component(module_file: str, *instruments: str) -> Callable[..., Any]:
    """The component in a package's folder: the script, and the markup and style sheet if there are any, of its name.

    module_file: the package's `__file__`. instruments: the frontend's style sheets that it needs, too.
    """
    folder = Path(module_file).parent
    name, own = folder.name, [f"{folder.name}.css"] if (folder / f"{folder.name}.css").exists() else []
    look: dict[str, Any] = {}
    if (folder / f"{name}.html").exists():
        look = {"html": reader(module_file)(f"{name}.html"), "css": style(module_file, *own, instruments=instruments)}
    return component(f"headsup_{name}", js=script(name), **look)


def script(name: str) -> str:
    """A script that mounts a component. name: its name in components.js."""
    return LOADER % (json.dumps(address(COMPONENTS)), json.dumps(name))
