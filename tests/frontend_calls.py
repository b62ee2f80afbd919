"""Calls functions of the frontend from Python, in one Node process."""

import base64
import functools
import itertools
import json
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("frontend") / "frontend_calls.mjs"
_calls = itertools.count()


class Looked(dict):
    """What is looked at, as the parameters of an address say it; there it is a `PageState`."""

    def __init__(self, search):
        super().__init__(isLooked=True, search=search)


@functools.cache
def _node():
    driver = pytest.importorskip("playwright._impl._driver", reason="playwright, which brings Node, is not installed")
    command = [driver.compute_driver_executable()[0], "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", SCRIPT]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")


def frontend(module, name, *args, ask=None):
    """What an exported function of a module returns. args: whatever JSON can say. ask: answers what it asks of the API,
    a request as JSON, with a status and bytes."""
    node, call = _node(), next(_calls)

    def tell(**told):
        print(json.dumps({"call": call, **told}), file=node.stdin, flush=True)

    tell(module=module, name=name, args=args)
    while True:
        line = json.loads(node.stdout.readline())
        if line["call"] != call:  # said by one that has failed here
            continue
        if "returns" in line:
            return line["returns"]
        assert "throws" not in line, line["throws"]
        status, content = ask(line)
        tell(question=line["question"], status=status, content=base64.b64encode(content).decode())
