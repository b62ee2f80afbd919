"""Keeps uploaded lessons in the Redis that servers share, by the tokens of their sessions.

Where there is none, or it can't be reached, a lesson is lost with its server, as the rest of its session is.
"""

from pages.ui.shared_redis import PREFIX, attempt, shared_client

KEPT_FOR = 8 * 3600
"""Seconds since it was uploaded, or came back: a day at school."""


def keep_lesson(token: str, text: str) -> None:
    """Keep the text of a session's lesson; "" removes it."""
    if client := shared_client():
        attempt(lambda: client.set(_key(token), text, ex=KEPT_FOR) if text else client.delete(_key(token)))


def kept_lesson(token: str) -> str:
    """The text of a session's lesson; "" for none."""
    client = shared_client()
    return (client and attempt(lambda: client.get(_key(token)))) or ""


def _key(token: str) -> str:
    return f"{PREFIX}lesson:{token}"
