"""Lists what the random walk types, uploads and opens."""

WORDS = ("two hundred and five", "forty-two", "seven", "one million", "nine thousand and nine", "the king")
"""For an encoder that reads number words."""
PROMPTS = (
    "Hello world",
    "the king",
    "the king#",
    "my lord of York",
    "To be, or not to be, that is the question",
    "a",
    "",
    "ROMEO:\nBut, soft",
    "naïve café 😀",
    "\n",
    "<b>$x$</b> **`_",
    "forty-two",
    "hello=",
    "abc",
    "Aquí me pongo a cantar",
    " ".join(["And so on, and on,"] * 12),
)
BATCHES = (
    "one\ntwo\nthree\nfour",
    "one\ntwo",
    "one",
    "",
    "To be\nor\n<b>é😀\nnot",
    "\n\nthe king\n\n",
    "a\nbb\nccc\ndddd\neeeee",
    "forty-two\ntwo hundred and five",
    "\n".join(f"line {number}" for number in range(12)),
)
OWN_TEXTS = ("", "Too short a text.", "Twinkle, twinkle, little star,\nHow I wonder what you are. 😀\n" * 30)
NUMBERS = ("0", "1", "5", "7", "63", "-3", "100000000000", "2.5", "")
LINKS = (
    "",
    "?model=nobody&layer=9&head=x",
    "?text=,%20my%20love&scope=all&step=3",
    "Attention?prompt=Hello%20world&query=5&key=2&zoom=2,8,0,6&without=mask&order=itself&direction=to",
    "Attention?model=translator&prompt=forty-two&attention=encoder",
    "Masks?batch=To%20be%0Aor%0Anot&batch_row=2&pad_side=left",
    "Positions?length=12&position=11&dimension=7",
    "Inside?prompt=Hello%20world&inside=blocks.0.attn.hook_pattern&place=4&cell=1,4,2&heads=one&head=1&moment=1.5",
    "Inside?model=translator&prompt=forty-two&inside=decoder.blocks.0.cross_attn&source_place=1",
    "What_if?prompt=Hello%20world&changes=scale~blocks.0.attn.hook_z~1~~0!-without~mask~",
    "What_if?model=translator&prompt=forty-two&question=needed&effect=logit&token=7",
    "Train?shape=dials&steps=50&d_model=32",
)
"""Links to the app, without its address."""
FILES = (
    {"name": "notes.txt", "mimeType": "text/plain", "buffer": OWN_TEXTS[-1].encode()},
    {"name": "empty.txt", "mimeType": "text/plain", "buffer": b""},
    {"name": "model.headsup.zip", "mimeType": "application/zip", "buffer": b"PK\x03\x04 and no more"},
)
"""As Playwright takes them."""


def texts_for(label: str) -> tuple[str, ...]:
    """What is typed into a text area with this label."""
    pools = {"source": WORDS + PROMPTS, "a line": BATCHES, "paste": OWN_TEXTS}
    return next((texts for words, texts in pools.items() if words in label.lower()), PROMPTS)
