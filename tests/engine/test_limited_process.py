"""Tests programs that run on strangers' requests: time, memory and output are limited, and nothing is known there."""

import sys

import pytest

from transformer.data.limited_process import MEGABYTE, ProgramError, answer_of


@pytest.fixture
def ask(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import os\n\ndef answer(request):\n    return eval(request)\n", encoding="utf-8")
    limits = {"deadline": 60.0, "seconds": 1, "memory": 64 * MEGABYTE, "output": 10_000}
    return lambda request, **more: answer_of(program, request, **{**limits, **more})


def test_a_program_answers_and_knows_nothing_of_the_server(ask, monkeypatch, tmp_path):
    monkeypatch.setenv("HEADSUP_SECRET", "told")
    monkeypatch.setenv("HEADSUP_CHECKPOINTS", str(tmp_path))
    answer, known, there = ask(
        "[['é', 1.5, None], dict(os.environ), os.listdir('.')]", environment=["HEADSUP_CHECKPOINTS"]
    )
    assert answer == ["é", 1.5, None] and there == []
    assert known["HEADSUP_CHECKPOINTS"] == str(tmp_path) and "HEADSUP_SECRET" not in known


@pytest.mark.skipif(sys.platform != "linux", reason="other systems limit less")
@pytest.mark.parametrize(
    ("request_text", "why"),
    [
        ("sum(0 for each in iter(int, 1))", "it takes too much"),
        ("len(bytearray(10 ** 9))", "it takes too much memory"),
        ("'a' * 100_000", "it takes too much time, memory or room"),
        ("os._exit(1)", "it takes too much time, memory or room"),
        ("os._exit(0)", "it gives no text"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_what_asks_for_too_much_is_ended(ask, request_text, why):
    with pytest.raises(ProgramError, match=why):
        ask(request_text)


def test_what_waits_is_ended_too(ask):
    with pytest.raises(ProgramError, match="it takes longer than 2 seconds"):
        ask("__import__('time').sleep(100)", deadline=2.0)
