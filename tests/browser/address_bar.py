"""Reads the address bar."""


def address(page):
    """The address of a page. `page.url` isn't asked: it can miss a change that comes right after another."""
    return page.evaluate("location.href")
