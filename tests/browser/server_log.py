"""Finds errors in a server's log."""

import re

TRACEBACK = "Traceback (most recent call last)"
# Streamlit begins a visitor's next run at once, while the one before goes on up to its next call of Streamlit, and each
# looks at the session under a lock of its own. What the replaced one ends with is logged, and shown to nobody.
REPLACED = re.compile(
    r"Traceback \(most recent call last\):\n(?: .*\n)*"
    r'  File "[^"]*runtime/state/session_state\.py".*\n(?:    .*\n)*'
    r"RuntimeError: dictionary changed size during iteration"
)


def has_traceback(log: str) -> bool:
    """Whether a part of a log has a traceback, other than that of a run that was replaced while it read the session."""
    return TRACEBACK in REPLACED.sub("", log)
