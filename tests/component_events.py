"""What a component's script in the browser sends, as `event_queue.js` does."""

import itertools

from pages.ui.components.events import session_id

_NUMBERS = itertools.count(1)


def sent(component, *events, session=None):
    """The state that has these events, (name, value) each, of a component's key. session: that it is sent to."""
    told = [{"number": next(_NUMBERS), "component": component, "name": name, "value": value} for name, value in events]
    return {"session": session_id() if session is None else session, "events": told}
