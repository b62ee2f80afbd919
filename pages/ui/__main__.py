"""Checks lessons, lists their measures, writes them as files and the site: `python -m pages.ui lesson check FILE …`,
`lesson measures`, `lesson file NAME`, `lesson training`, `site FOLDER`."""

import argparse
import logging
import sys
from collections.abc import Callable
from pathlib import Path

from transformer.output_pipe import until_closed


def main(arguments: list[str] | None = None) -> int:
    """Do what is asked for. Returns the exit status: 1 if anything is wrong with a lesson."""
    parser = argparse.ArgumentParser(prog="python -m pages.ui", description="Lessons of the page Learn.")
    kinds = parser.add_subparsers(required=True)
    site = kinds.add_parser("site", help="write a static site: shipped models, pages, course")
    site.add_argument("folder", type=Path, help="a new folder, or that of an earlier site")
    site.set_defaults(run=lambda given: _write(lambda: _site(given.folder)))
    lesson = kinds.add_parser("lesson", help="for those who write lessons")
    commands = lesson.add_subparsers(required=True)
    check = commands.add_parser("check", help="say what is wrong with lessons, and what to write instead")
    check.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a lesson, in Markdown")
    check.set_defaults(run=lambda given: max(map(_check, given.files)))
    commands.add_parser("measures", help="list what lessons can measure").set_defaults(run=lambda given: _measures())
    training = commands.add_parser("training", help="record the training that pages show which can't train")
    training.set_defaults(run=lambda given: _write(_training))
    file = commands.add_parser("file", help="write a lesson as one HTML file, which needs no server and no network")
    file.add_argument("name", help="such as 06-queries-keys-values")
    file.add_argument("file", type=Path, nargs="?", help="where to (default: NAME.html)")
    file.set_defaults(run=lambda given: _write(lambda: _file(given.name, given.file or Path(f"{given.name}.html"))))
    given = parser.parse_args(arguments)
    logging.disable(logging.WARNING)  # Streamlit warns of each cached call that no page makes
    return given.run(given)


def _write(write: Callable[[], str]) -> int:
    try:
        print(write())
    except BrokenPipeError:
        raise  # to `until_closed`
    except (OSError, ValueError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def _site(folder: Path) -> str:
    from pages.ui.views.learn.site_lessons import write_whole_site

    lessons, size = write_whole_site(folder)
    return f"Wrote {folder}: {lessons} lessons, {size / 1e6:.1f} MB. Serve it with any web server, below any path."


def _file(name: str, file: Path) -> str:
    from pages.ui.views.learn.site_lessons import lesson_file, lesson_named

    file.write_text(lesson_file(lesson_named(name)), encoding="utf-8")
    return f"Wrote {file}, {file.stat().st_size / 1e6:.1f} MB, which any browser opens."


def _training() -> str:
    from pages.ui.lessons.recorded_training import record

    return record()


def _measures() -> int:
    from pages.ui.lessons.measure_reference import measures

    print(measures())
    return 0


def _check(file: Path) -> int:
    from pages.ui.views.learn.lesson_check import check

    try:
        text = file.read_text(encoding="utf-8-sig")
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
    sys.exit(until_closed(main))
