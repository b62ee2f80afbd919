"""The views of the page What if, a question each: `show(session)` draws one."""
