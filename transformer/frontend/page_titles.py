"""The pages of the app, in their order, and what each shows in a sentence."""

import json

from . import FOLDER

SENTENCES: dict[str, str] = {
    page["title"]: page["sentence"] for page in json.loads((FOLDER / "pages.json").read_text(encoding="utf-8"))
}
