"""Renders an untrusted chat template. It runs as a program of its own, which nothing imports.

It reads one JSON object from standard input and writes one to standard output. The template runs in Jinja's sandbox, as
in `transformers`; the process limits itself before it starts: time, memory, and bytes written.
"""

import json
import sys
from datetime import datetime

MEGABYTE = 2**20
MEMORY = 512 * MEGABYTE
OUTPUT = MEGABYTE
LONGEST = 20_000
"""Characters of one text."""


def main() -> None:
    """Answer one question."""
    request = json.load(sys.stdin)
    _limit(request["seconds"])
    try:
        answer = {"texts": _texts(request["template"], request["words"], request["named"])}
    except Exception as error:  # whatever the program does wrong
        answer = {"error": f"{type(error).__name__}: {error}"[:300]}
    json.dump(answer, sys.stdout)


def _limit(seconds: int) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    for limit, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_FSIZE, OUTPUT),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (most, most))


def _texts(source: str, words: list[str], named: dict[str, str]) -> list[str]:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _generation()]
    )
    environment.filters["tojson"] = _as_json
    environment.globals |= {"raise_exception": _fail, "strftime_now": lambda form: datetime.now().strftime(form)}
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
    """The block {% generation %}, which marks what an assistant said, and changes nothing."""
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


if __name__ == "__main__":
    main()
