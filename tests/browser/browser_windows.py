"""Opens browser windows for tests, and keeps their tabs for the next test."""

SPARE_TABS = 2
PATIENCE_MS = 120_000
"""How long a test waits for what it expects: on a busy machine everything takes ten times as long."""


class Window:
    """A window that shares neither cookies nor storage with others, and its tabs that no test has.

    What one tab has loaded is there for the next, and a tab that has shown the app before opens it in half the time.
    """

    def __init__(self, browser):
        self.context = browser.new_context(bypass_csp=True)  # Playwright waits by evaluating texts in the page
        self.context.set_default_timeout(PATIENCE_MS)
        self.spare = []

    def open_tab(self):
        return self.spare.pop() if self.spare else self.context.new_page()

    def empty(self, servers):
        """Take all tabs back: keep some, emptied, and forget what pages have stored, but not what was loaded."""
        for page in self.context.pages:
            if page in self.spare:
                continue
            if len(self.spare) < SPARE_TABS and not page.opener() and _empty(page):
                self.spare.append(page)
            else:
                page.close()
        if not self.spare:
            self.spare.append(self.context.new_page())
        storage = self.context.new_cdp_session(self.spare[-1])
        for server in servers:
            storage.send("Storage.clearDataForOrigin", {"origin": server.url, "storageTypes": "all"})
        storage.detach()


def _empty(page):
    """Leave what the tab shows, and forget the way there and what was held up; False if it can't be done."""
    from playwright.sync_api import Error

    try:
        page.mouse.move(0, 0)
        page.evaluate("() => { try { sessionStorage.clear(); } catch { /* a page of no address has none */ } }")
        page.goto("about:blank")
        page.unroute_all()
        history = page.context.new_cdp_session(page)
        history.send("Page.resetNavigationHistory")
        history.detach()
    except Error:
        return False
    return True
