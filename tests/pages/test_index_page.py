"""Tests the page that the server sends at every address: what search engines and previews of links read in it."""

import html
import re
import struct
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

import pytest
import streamlit
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.testclient import TestClient

from pages.ui import server_startup
from pages.ui.components import assets
from pages.ui.index_page import NOSCRIPT, PREVIEW, IndexPage
from transformer.frontend.page_titles import SENTENCES

STATIC = Path(streamlit.__file__).parent / "static"


@pytest.fixture
def visitor():
    """Of a server that serves Streamlit's page at every address, as Streamlit does, below /school."""
    routes = [
        Route("/school/api/shapes", lambda request: PlainTextResponse(str(request.headers.get("if-none-match")))),
        Route("/school/other", lambda request: HTMLResponse("<title>Other</title>")),
        Route("/school/nothing", lambda request: PlainTextResponse("nothing", 404)),
        *(each for each in server_startup.routes("school") if getattr(each, "path", "").endswith(PREVIEW.name)),
        Mount("/school/static", StaticFiles(directory=STATIC / "static")),
        Route("/school/{path:path}", lambda request: FileResponse(STATIC / "index.html")),
    ]
    app = Starlette(routes=routes, middleware=[Middleware(IndexPage, "/school/")])
    return TestClient(app, base_url="https://heads.example")


class Head(HTMLParser):
    """The elements of a page, as a browser reads them."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.metas = [], {}
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append((tag, given))
        if tag == "meta" and "content" in given:
            self.metas[given.get("name") or given.get("property")] = given["content"]


@pytest.mark.parametrize(
    ("path", "page"),
    [("", "Generate"), ("Attention", "Attention"), ("What_if", "What if"), ("Train", "Train"), ("nowhere", "Generate")],
)
def test_each_page_says_what_it_is_and_fetches_its_scripts_at_once(path, page, visitor):
    text = visitor.get(f"/school/{path}").text
    head = Head(text)
    assert re.findall("<title>(.*?)</title>", text) == [f"{page} · HeadsUp"]
    assert head.metas["description"] == head.metas["og:description"] == SENTENCES[page]
    assert head.metas["og:title"] == f"{page} · HeadsUp"
    assert NOSCRIPT in text and "agent" not in text.partition("<body>")[2] and "Streamlit<" not in text
    (icon,) = (given["href"] for tag, given in head.tags if given.get("rel") == "shortcut icon")
    assert icon.startswith("data:image/svg+xml,<svg")
    preloaded = [given["href"] for tag, given in head.tags if given.get("rel") == "modulepreload"]
    (sheet,) = (given["href"] for tag, given in head.tags if given.get("as") == "style")
    assert sheet == f"./{assets.address(assets.SHELL_STYLE)}"
    parts = {"Generate": ("generation", "filling"), "Attention": ("attention",), "What if": ("what_if",)}.get(page, ())
    ours = [f"./{assets.address(assets.COMPONENTS)}"]
    ours += [ours[0].replace("components.js", f"{part}_view.js") for part in parts]
    assert preloaded[: len(ours) + 1] == [*ours, next(each for each in preloaded if "/static/" in each)]
    scripts = re.findall("<script.*?</script>", (STATIC / "index.html").read_text(encoding="utf-8"), re.DOTALL)
    assert re.findall("<script.*?</script>", text, re.DOTALL) == scripts, "the policy knows Streamlit's, and no others"


@pytest.mark.parametrize(
    ("link", "title"),
    [
        ({"model": "shakespeare", "prompt": "To be"}, "“To be” · shakespeare · "),
        ({"prompt": "one\n\ttwo  three"}, "“one two three” · "),
        ({"prompt": "x" * 61}, f"“{'x' * 59}…” · "),
        ({"prompt": '"><script>alert(1)</script>'}, '“"><script>alert(1)</script>” · '),
        ({"prompt": r"\g<0>\1 {head} %s &amp;</title>"}, r"“\g<0>\1 {head} %s &amp;</title>” · "),
        ({"prompt": "a\u202eb\u200bc\0d\ud800"}, "“a b c d���” · "),
        ({"model": "own-0123456789abcdef"}, ""),  # by which whoever sees the preview could open it
        ({"model": "<b>"}, ""),
        ({"prompt": ""}, ""),
        (dict.fromkeys(map(str, range(300)), "1"), ""),
    ],
)
def test_a_link_s_preview_names_its_prompt_and_model_and_is_nothing_but_text(link, title, visitor):
    query = urlencode(link, errors="surrogatepass")
    text, plain = (visitor.get(f"/school/Inside?{given}").text for given in (query, ""))
    assert Head(text).metas["og:title"] == f"{title}Inside · HeadsUp"
    assert [tag for tag, _ in Head(text).tags] == [tag for tag, _ in Head(plain).tags]
    assert text.replace(html.escape(title), "") == plain


def test_a_preview_s_picture_is_served_by_the_app_at_an_address_in_full(visitor):
    def address(**headers):
        return Head(visitor.get("/school/Train", headers=headers).text).metas.get("og:image")

    picture = visitor.get(address())
    assert picture.headers["content-type"] == "image/png" and len(picture.content) < 100_000
    assert struct.unpack(">II", picture.content[16:24]) == (1200, 630)
    assert address(Host="a.example:8501") == f"https://a.example:8501/school/{PREVIEW.name}"
    assert address(Host='a"><script>') is None
    plain = TestClient(visitor.app, base_url="http://[::1]:8501")
    for forwarded, scheme in (("", "http"), ("https, http", "https")):
        text = plain.get("/school/", headers={"X-Forwarded-Proto": forwarded}).text
        assert Head(text).metas["og:image"] == f"{scheme}://[::1]:8501/school/{PREVIEW.name}"


def test_it_is_sent_again_only_if_it_has_changed_and_compressed_to_whom_can_read_that(visitor):
    first = visitor.get("/school/Masks", headers={"Accept-Encoding": "gzip"})
    assert first.headers["content-encoding"] == "gzip" and int(first.headers["content-length"]) < 4_000
    plain = visitor.get("/school/Masks", headers={"Accept-Encoding": "identity", "Range": "bytes=0-9"})
    assert plain.status_code == 200 and plain.text == first.text and "content-encoding" not in plain.headers
    tag = first.headers["etag"]
    assert plain.headers["etag"] == tag and "last-modified" not in plain.headers
    for sent, status in (
        (tag, 304),
        (f'"a", W/{tag}', 304),
        ('"a"', 200),
        (visitor.get("/school/").headers["etag"], 200),
    ):
        again = visitor.get("/school/Masks", headers={"If-None-Match": sent})
        assert (again.status_code, bool(again.content)) == (status, status == 200)
    since = {"If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"}
    assert visitor.get("/school/Masks", headers=since).status_code == 200, "its file hasn't changed, but it may have"


def test_everything_else_is_served_as_it_was(visitor):
    assert visitor.get("/school/api/shapes", headers={"If-None-Match": '"a"'}).text == '"a"'
    assert visitor.get("/school/other").text == "<title>Other</title>"
    assert (answer := visitor.get("/school/nothing")).status_code == 404 and answer.text == "nothing"
    script = next((STATIC / "static" / "js").glob("index.*.js")).name
    fetched = visitor.get(f"/school/static/js/{script}")
    again = visitor.get(f"/school/static/js/{script}", headers={"If-None-Match": fetched.headers["etag"]})
    assert fetched.status_code == 200 and again.status_code == 304
    assert visitor.post("/school/Masks").status_code == 405
