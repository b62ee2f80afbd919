"""Makes Chromium an older browser: it lacks what older_browser.js names, in pages, workers and style sheets."""

import json
import re
from pathlib import Path

_LACKS = (Path(__file__).parent / "older_browser.js").read_text(encoding="utf-8")
# Streamlit's own bundle needs toSorted, of 2023.
OLDER_THAN_STREAMLIT = f"""{{
  const kept = Object.getOwnPropertyDescriptor(Array.prototype, "toSorted");
  {_LACKS}
  Object.defineProperty(Array.prototype, "toSorted", kept);
}}"""
"""A script for a page of the app, before any other."""
_IN_WORKERS = f"""{{
  const lacks = {json.dumps(_LACKS)};
  globalThis.Blob = class extends Blob {{
    constructor(parts = [], options = {{}}) {{
      super(options.type === "text/javascript" ? [lacks, ...parts] : parts, options);
    }}
  }};
}}"""
_UNREAD = re.compile(r"(color-mix|:has|light-dark)(?=\()|@container|field-sizing|text-wrap|(?<=[\s(])popover(?==)")


def make_older(page):
    """Let a page that isn't open yet be one in an older browser."""
    page.add_init_script(_LACKS + _IN_WORKERS)

    def without(route):
        answer = route.fetch()
        if re.search("html|css|javascript", answer.headers.get("content-type", "")):
            route.fulfill(response=answer, body=_UNREAD.sub("unread", answer.text()))
        else:
            route.fulfill(response=answer)

    page.route("**/*", without)
