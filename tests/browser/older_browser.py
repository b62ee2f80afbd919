"""Makes Chromium an older browser: takes from a page, its workers and its style sheets what browsers have had since 2022."""

import json
import re

LACKS = """
delete AbortSignal.any;
delete AbortSignal.timeout;
for (const name of ["showPopover", "hidePopover", "togglePopover", "popover"]) delete globalThis.HTMLElement?.prototype[name];
for (const Kind of [Array, Object.getPrototypeOf(Uint8Array)]) {
  for (const name of ["toReversed", "toSorted", "toSpliced", "with", "findLast", "findLastIndex"]) delete Kind.prototype[name];
}
for (const name of ["union", "intersection", "difference", "symmetricDifference", "isSubsetOf", "isSupersetOf", "isDisjointFrom"]) delete Set.prototype[name];
for (const [owner, ...names] of [
  [Object, "groupBy"], [Map, "groupBy"], [Array, "fromAsync"], [Promise, "withResolvers", "try"], [URL, "canParse", "parse"], [RegExp, "escape"],
  [String.prototype, "isWellFormed", "toWellFormed"], [ReadableStream.prototype, Symbol.asyncIterator], [Intl, "Segmenter"],
  [globalThis, "requestIdleCallback", "cancelIdleCallback", "scheduler", "Highlight", "Iterator", "CompressionStream", "DecompressionStream"],
  [globalThis.CSS ?? {}, "highlights"], [globalThis.Element?.prototype ?? {}, "checkVisibility", ...["Label", "Pressed", "Hidden"].map((name) => `aria${name}`)],
  [globalThis.CanvasRenderingContext2D?.prototype ?? {}, "roundRect"], [URLSearchParams.prototype, "size"],
]) for (const name of names) delete owner[name];
{
  const iterator = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()));
  for (const name of Object.getOwnPropertyNames(iterator)) if (name !== "constructor") delete iterator[name];
  const refuse = (source) => {
    if (/\\(\\?<[=!]/.test(source)) throw new SyntaxError("invalid group");
  };
  globalThis.RegExp = new Proxy(RegExp, {
    construct: (Kind, given, as) => (refuse(given[0]), Reflect.construct(Kind, given, as)),
    apply: (Kind, self, given) => (refuse(given[0]), Reflect.apply(Kind, self, given)),
  });
  const { matches, querySelector, querySelectorAll } = globalThis.Element?.prototype ?? {};
  const known = (act) => function (selector) {
    if (/:popover-open|:has\\(/.test(selector)) throw new SyntaxError(`'${selector}' is not a valid selector`);
    return act.call(this, selector);
  };
  if (matches) Object.assign(Element.prototype, { matches: known(matches), querySelector: known(querySelector), querySelectorAll: known(querySelectorAll) });
}
"""
"""What Safari 16.0, Firefox 108 or Chrome 108 don't have; `ReadableStream` can't be read by `for await` in most."""
IN_THE_APP = """{
  const kept = Object.getOwnPropertyDescriptor(Array.prototype, "toSorted"); // Streamlit's own bundle needs it
  %s
  Object.defineProperty(Array.prototype, "toSorted", kept);
}""" % LACKS
_WORKERS = """
{
  const lacks = %s;
  globalThis.Blob = class extends Blob {
    constructor(parts = [], options = {}) {
      super(options.type === "text/javascript" ? [lacks, ...parts] : parts, options);
    }
  };
}
"""
UNREAD = re.compile(r"color-mix(?=\()|@container|:has(?=\()|light-dark(?=\()|field-sizing|text-wrap|(?<=[\s(])popover(?==)")
"""What older browsers don't read in style sheets and markup."""


def make_older(page):
    """Let a page that isn't open yet lack all that, and its style sheets, too."""
    page.add_init_script(LACKS + _WORKERS % json.dumps(LACKS))

    def without(route):
        answer = route.fetch()
        kind = answer.headers.get("content-type", "")
        if not re.search("html|css|javascript", kind):
            route.fulfill(response=answer)
            return
        route.fulfill(response=answer, body=UNREAD.sub("unread", answer.text()))

    page.route(re.compile(r".*"), without)
