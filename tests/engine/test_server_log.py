"""Tests which errors in a server's log count, for the tests that look for some."""

import pytest

from tests.browser.server_log import has_traceback

REPLACED = """2026-01-02 03:04:05.678 Uncaught app execution
Traceback (most recent call last):
  File "/lib/streamlit/runtime/state/session_state.py", line 741, in <setcomp>
    old_keys = {self._get_widget_id(k) for k in self._old_state}
               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
RuntimeError: dictionary changed size during iteration
"""


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (REPLACED, False),
        (REPLACED.replace("streamlit/runtime/state/session_state.py", "transformer/api/single_flight.py"), True),
        (REPLACED.replace("RuntimeError: dictionary changed size", "KeyError: size"), True),
        (REPLACED + REPLACED.replace("RuntimeError", "ValueError") + REPLACED, True),
    ],
)
def test_what_a_replaced_run_ends_with_is_no_error_and_all_else_is(log, expected):
    assert has_traceback(log) is expected
