"""Loads the files of components, and serves their scripts as modules.

Scripts are served as modules, at addresses with their content's hash; a session is sent no more than where they are,
all that a script imports included, so that the browser fetches it at once.
"""

from __future__ import annotations

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
LOADER = """const [base, first, ...others] = [new URL(%s, document.baseURI), ...%s];
for (const path of others) {
  const link = { rel: "modulepreload", href: new URL(path, base) };
  document.head.append(Object.assign(document.createElement("link"), link));
}
const module = import(new URL(first, base));
export default function (component) {
  module.then((loaded) => loaded.default(component), () => {
    const root = component.parentElement.querySelector("[data-part=root]");
    if (root) root.textContent = "This part of the page could not be loaded. Reload the page.";
  });
}
"""


def glossary_terms() -> list[dict[str, Any]]:
    """The glossary as the browser gets it: `words` are all words for a term, its name first."""
    return [{**dataclasses.asdict(term), "words": [term.name, *term.others]} for term in glossary.entries()]


MODULES = FrontendModules(
    {"transformer/frontend": frontend.FOLDER, "pages/ui/components": HERE},
    {
        GLOSSARY: json.dumps(glossary_terms(), ensure_ascii=False).encode(),
        WORKER: frontend.bundle(frontend.FOLDER / "engine" / "worker.js").encode(),
    },
)


def address(path: str) -> str:
    """Where a file is served, relative to the app's pages. Raises: KeyError if there is no such file."""
    return f"{MOUNTED_AT}/{MODULES.address(path)}"


def reader(module_file: str) -> Callable[[str], str]:
    """A function that returns the text of a file beside a module. module_file: the module's `__file__`."""
    folder = Path(module_file).parent
    return lambda name: (folder / name).read_text(encoding="utf-8")


def custom_component(module_file: str, *instruments: str) -> Callable[..., Any]:
    """The component in a package's folder: the script, and the markup and style sheet if there are any, of its name.

    module_file: the package's `__file__`. instruments: the frontend's style sheets that it needs, too.
    """
    folder = Path(module_file).parent
    name, own = folder.name, [f"{folder.name}.css"] if (folder / f"{folder.name}.css").exists() else []
    look: dict[str, Any] = {}
    if (folder / f"{name}.html").exists():
        look = {"html": reader(module_file)(f"{name}.html"), "css": style(module_file, *own, instruments=instruments)}
    return component(f"headsup_{name}", js=script(module_file, f"{name}.js"), **look)


def script(module_file: str, name: str) -> str:
    """A script that loads a module: a file beside a Python module, which has the default export."""
    return _loader(f"pages/ui/components/{Path(module_file).with_name(name).relative_to(HERE).as_posix()}")


def frontend_script(name: str) -> str:
    """The same of a module of the frontend."""
    return _loader(f"transformer/frontend/{name}")


def style(module_file: str, *names: str, instruments: Sequence[str] = ()) -> str:
    """One style sheet: the theme, the scale, the frontend's of these names, then those beside a Python module."""
    read, read_instruments = reader(module_file), reader(frontend.__file__)
    sheets = map(read_instruments, ("type_scale.css", *instruments))
    return without_comments("\n".join([reader(__file__)("theme.css"), *sheets, *map(read, names)]))


def without_comments(css: str) -> str:
    """A style sheet as a session is sent it: each visitor's browser gets it again with every page it opens."""
    return re.sub(r"/\*.*?\*/\s*", "", css, flags=re.DOTALL)


def _loader(path: str) -> str:
    return LOADER % (json.dumps(f"{MOUNTED_AT}/{MODULES.version}/"), json.dumps(MODULES.needs(path)))
