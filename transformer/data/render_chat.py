"""Renders an untrusted chat template, in Jinja's sandbox as in `transformers`; `limited_process` runs it."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

LONGEST = 20_000
"""The longest rendered text, in characters."""


def answer(request: dict[str, Any]) -> list[str]:
    """Render a template for each message."""
    mark, day = request["mark"], request["day"]
    today = datetime.fromisoformat(day).strftime if day else lambda form: f"{mark}{form}{mark}"
    return _texts(request["template"], request["words"], request["named"], today)


def _texts(source: str, words: list[str], named: dict[str, str], today: Callable[[str], str]) -> list[str]:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _generation()]
    )
    environment.filters["tojson"] = _as_json
    environment.globals |= {"raise_exception": _fail, "strftime_now": today}
    del environment.globals["lipsum"], environment.filters["random"]  # their output is random
    template = environment.from_string(source)
    return [_text(template, message, named) for message in words]


def _text(template, words: str, named: dict[str, str]) -> str:
    messages = [{"role": "user", "content": words}]
    parts, length = [], 0
    for part in template.generate(messages=messages, tools=None, documents=None, add_generation_prompt=True, **named):
        parts.append(part)
        length += len(part)
        if length > LONGEST:
            raise ValueError(f"it writes more than {LONGEST:,} characters")
    return "".join(parts)


def _generation() -> type:
    """The block {% generation %}, which marks the assistant's words and changes nothing."""
    from jinja2 import nodes
    from jinja2.ext import Extension

    class Generation(Extension):
        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser):
            line = next(parser.stream).lineno
            return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True)).set_lineno(line)

    return Generation


def _as_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _fail(message: str):
    from jinja2.exceptions import TemplateError

    raise TemplateError(message)
