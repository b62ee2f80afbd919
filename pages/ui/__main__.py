"""Checks lessons and lists their measures: `python -m pages.ui lesson check FILE …`, `lesson measures`."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Do what is asked for. Returns the exit status: 1 if anything is wrong with a lesson."""
    parser = argparse.ArgumentParser(prog="python -m pages.ui", description="Lessons of the page Learn.")
    lesson = parser.add_subparsers(required=True).add_parser("lesson", help="for those who write lessons")
    commands = lesson.add_subparsers(required=True)
    check = commands.add_parser("check", help="say what is wrong with lessons, and what to write instead")
    check.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a lesson, in Markdown")
    check.set_defaults(run=lambda given: max(map(_check, given.files)))
    commands.add_parser("measures", help="list what lessons can measure").set_defaults(run=lambda given: _measures())
    given = parser.parse_args(arguments)
    logging.disable(logging.WARNING)  # Streamlit warns of each cached call that no page makes
    return given.run(given)


def _measures() -> int:
    from pages.ui.lessons.measure_reference import measures

    print(measures())
    return 0


def _check(file: Path) -> int:
    from pages.ui.views.learn.lesson_check import check

    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        print(f"{file}: it can't be read as a text in UTF-8 ({error}).", file=sys.stderr)
        return 1
    is_fine = True
    for finding in check(text):
        is_fine = False
        print(f"{file}, {finding}")
    if is_fine:
        print(f"{file}: no problems found.")
    return int(not is_fine)


if __name__ == "__main__":
    sys.exit(main())
