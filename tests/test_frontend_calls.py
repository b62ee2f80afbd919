"""Tests the calls of the frontend, which all tests of a process make in one Node process."""

import pytest

from tests.frontend_calls import Looked, frontend


def test_a_call_that_failed_says_nothing_to_the_next():
    def never(request):
        raise ConnectionError(request["asks"])

    shown = "../../tests/frontend/shown_page.mjs", "shownPage", "Attention", Looked("model=one"), [], True
    with pytest.raises(ConnectionError, match="one"):
        frontend(*shown, ask=never)
    with pytest.raises(AssertionError, match="is not a function"):
        frontend("attention/view_params.js", "missing")
    place = {"module": "blocks.0.attn", "head": 0, "query": 1, "key": 1, "stage": "raw"}
    found = frontend("inside/view_params.js", "toAttention", place, {"offset": 0, "prompt": 3})
    assert found["looked"]["layer"] == "0"
