"""Checks a lesson that somebody has uploaded, in a process with limits: it may be anybody's, and ask for a lot.

The process imports PyTorch, as the models' measures need it; most of that memory it shares with the server's.
"""

import time
from collections.abc import Hashable
from concurrent.futures import wait
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pages.ui.lessons.lesson import LONGEST_FILE, examine
from pages.ui.views.learn.lesson_check import Finding, check
from transformer.data.disk_errors import disk_problem
from transformer.data.file_kinds import file_kind
from transformer.data.limited_process import MEGABYTE, ProgramError, answer_of
from transformer.jobs import FairThreads

DEADLINE = 120.0
"""Seconds of real time, including the start of the process."""
SECONDS, SECONDS_TO_READ = 20, 2
"""Of a processor, for all that a lesson asks of the models, and for its file: what reads it lets nothing else run."""
MEMORY = 1024 * MEGABYTE
"""Bytes beyond what the process starts with."""
ENVIRONMENT = ("HEADSUP_CHECKPOINTS", "HEADSUP_CORPORA", "HEADSUP_MODEL_MEMORY")
"""The server's environment variables that the process gets."""
_one_at_a_time = FairThreads(1, "lesson check")


class Checked(NamedTuple):
    """An uploaded lesson, and what is wrong with it. problem: why it couldn't be checked, in a sentence."""

    text: str
    findings: tuple[Finding, ...] = ()
    problem: str = ""

    @property
    def opens(self) -> bool:
        """Whether the lesson can be opened, perhaps despite findings."""
        return not self.problem and not any(finding.is_fatal for finding in self.findings)


def checked(content: bytes, owner: Hashable = None, *, seconds: int = SECONDS, memory: int = MEMORY) -> Checked:
    """Check an uploaded file, however hostile. owner: in whose turn. seconds: of a processor. memory: bytes."""
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        text = ""
    if "+++" not in text:
        kind = file_kind(content)
        return Checked("", problem=f"Expected a lesson, a text in UTF-8 that begins with a line +++; found {kind}.")
    if len(text) > LONGEST_FILE:
        return Checked("", problem=f"A lesson has at most {LONGEST_FILE:,} characters; this one has {len(text):,}.")
    process = partial(
        answer_of,
        Path(__file__),
        {"text": text, "seconds": seconds},
        deadline=DEADLINE,
        seconds=seconds + 10,  # within which a check that is out of time says where it was
        memory=memory,
        output=MEGABYTE,
        environment=ENVIRONMENT,
    )
    found = _one_at_a_time.submit(owner, process)
    wait([found], DEADLINE)
    if found.cancel():  # it hasn't begun
        return Checked("", problem="Others are having lessons checked at the moment. Upload yours again in a minute.")
    try:
        findings = found.result()
    except ProgramError as error:
        more = "Ask the models for less: shorter prompts, fewer measures, fewer examples"
        return Checked("", problem=f"This lesson can't be opened: {error}. {more}.")
    except OSError as error:
        why = disk_problem(error) or error.strerror
        return Checked("", problem=f"The server can't check a lesson at the moment: {why}. Try again later.")
    return Checked(text, tuple(Finding(*finding) for finding in findings))


def answer(request: dict) -> list[tuple]:
    """In the process: what is wrong with a lesson. Raises: MemoryError."""
    began = time.process_time()
    examine("lesson", request["text"])
    if (took := time.process_time() - began) > SECONDS_TO_READ:
        return [(1, f"reading this file alone takes {took:.0f} seconds; write fewer and shorter texts.", True)]
    try:
        return [astuple(finding) for finding in check(request["text"], request["seconds"])]
    except RuntimeError as error:
        if "allocate memory" in str(error):  # PyTorch's own
            raise MemoryError from None
        raise
