"""Draws what a step's view shows as a still picture with its numbers, in HTML, for pages that can't compute it.

Dimensions: vocab, query, key.
"""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape

import numpy as np

from pages.ui.computations import activations
from pages.ui.computations.activations import log_softmax
from pages.ui.host.page_state import PageState
from pages.ui.lessons.expressions import ExpressionError
from pages.ui.lessons.lesson import View
from pages.ui.lessons.measure_setup import Setup
from pages.ui.lessons.recorded_training import losses_shown
from pages.ui.models import library
from pages.ui.number_format import percent
from transformer import attention_modules, trace_pass
from transformer.api.tensors import tensor
from transformer.frontend.static_image import still
from transformer.inference.context_windows import in_window
from transformer.inference.pattern_pooling import pool, quantise
from transformer.model.registry import pattern_names

MAX_TOKENS = 30
"""Most tokens of a head that is drawn with labels."""
CANDIDATES = 6
"""Bars of a distribution."""
HEADS = "All heads, a row for each layer: in each square rows are queries, columns are keys."
WIDTH = 480
"""Approximate width, in pixels, of a picture with one pixel a cell."""


def still_view(view: View) -> str:
    """Draw what a view shows; "" where that is impossible."""
    try:
        setup = Setup.of(view.parameters, {})
        return "\n".join(_DRAWN[view.page](view.parameters, setup)) if view.page in _DRAWN else ""
    except (ExpressionError, ValueError, IndexError):
        return ""  # the app says what is wrong with such a view


def attention_picture(link: Mapping[str, str], setup: Setup, layer: int, head: int) -> str:
    """One head's weights over a short text; "" for a longer one. Raises: IndexError, ValueError for a head that isn't
    there; ExpressionError for a text that can't be read."""
    kinds = attention_modules(library.config(setup.name))
    kind = link.get("attention", "cross")
    kind = kind if kind in kinds else next(iter(kinds))
    text = setup.window
    if kind == "cross":
        text += activations.answer(setup.name, text, setup.source, setup.interventions)[:-1]
    queries = setup.source if kind == "encoder" else text
    keys = queries if kind != "cross" else setup.source
    if max(len(queries), len(keys)) > MAX_TOKENS:
        return ""
    name = f"{kinds[kind][layer]}.hook_pattern[{head}]"
    pattern = tensor(library.opened(setup.name), text, setup.source, name, setup.interventions)
    labels = setup.tokenizer.labels
    drawn = _cells(pattern, labels(queries), labels(keys), causal=kind in ("self", "decoder"))
    where = f"Layer {layer}, head {head}: rows are queries, columns are keys; darker means more weight."
    return _figure(drawn, where)


def _cells(weights: np.ndarray, queries: Sequence[str], keys: Sequence[str], *, causal: bool) -> str:
    """Draw a head's weights as a table, darker for more, without masked cells. weights: (query, key)."""
    head = "".join(f"<th><span>{escape(key)}</span></th>" for key in keys)
    rows = ""
    for query, (label, of_query) in enumerate(zip(queries, weights.tolist(), strict=True)):
        cells = [
            f'<td class="cell" title="{escape(label)} → {escape(key)}: {weight:.2f}" '
            f'data-style="background: rgba(31, 58, 110, {weight:.3f})"></td>'
            for key, weight in zip(keys, of_query[: query + 1 if causal else None], strict=False)
        ]
        rows += f"<tr><th>{escape(label)}</th>{''.join(cells)}</tr>"
    return f'<table class="cells" role="img" aria-label="Attention weights"><tr><th></th>{head}</tr>{rows}</table>'


def _attention(link: Mapping[str, str], setup: Setup) -> Iterator[str]:
    opening = library.model(setup.name).card.opening
    layer, head = (int(link.get(name, (opening or {}).get(name, 0))) for name in ("layer", "head"))
    yield attention_picture(link, setup, layer, head) or _all_heads(setup)


def _inside(link: Mapping[str, str], setup: Setup) -> Iterator[str]:
    yield _all_heads(setup)
    yield from _generate(link, setup)


def _all_heads(setup: Setup) -> str:
    """Draw all heads in one picture without labels."""
    model = library.model(setup.name).model
    names, changed = pattern_names(model.config), in_window(setup.interventions, setup.begin)
    trace = trace_pass(model, setup.window, setup.source, names=names, interventions=changed)
    rows = [trace.tensors[name].float().numpy() for name in names]
    return _pixels([quantise(*pool(row, None)) for row in rows], HEADS) if rows else ""


def _generate(link: Mapping[str, str], setup: Setup) -> Iterator[str]:
    yield _figure(_bars(setup.tokenizer.labels, [_probabilities(setup)]), "The likeliest tokens.")


def _what_if(link: Mapping[str, str], setup: Setup) -> Iterator[str]:
    if PageState.of(link).question == "comparison":
        pair, titles = (setup, replace(setup, prompt=link.get("other_prompt"))), ("your prompt", "the other prompt")
    elif setup.changes:
        pair, titles = (replace(setup, changes=""), setup), ("unchanged", "changed")
    else:
        yield from _generate(link, setup)
        return
    drawn = _bars(setup.tokenizer.labels, list(map(_probabilities, pair)), titles)
    yield _figure(drawn, "The likeliest tokens of both.")


def _train(link: Mapping[str, str], setup: Setup) -> Iterator[str]:
    """Draw the curve of a recorded training, or else list the final losses of shipped models."""
    chosen = PageState.of(link)
    if losses := losses_shown(chosen.task) if chosen.learn == "task" else []:
        yield _figure(_curve(losses), "The validation loss, in nats per token, of a training that was recorded.")
        return
    rows = []
    for entry in library.usable().values():
        card = entry.card
        seen, unseen = card.train_loss, card.validation_loss
        if card.task == library.model(setup.name).card.task and seen is not None and unseen is not None:
            losses = (f"{loss:.2f}" for loss in (seen, unseen, unseen - seen))
            rows.append([escape(card.title), f"{card.parameters:,}", *losses])
    names = ("model", "parameters", "loss on its training text", "loss on other text", "gap")
    yield _figure(_table(names, rows), "The losses with which models were trained, in nats per token.")


def _curve(losses: Sequence[tuple[int, float]]) -> str:
    """Draw losses by step as SVG."""
    width, height, left, right, above, below = 460, 240, 40, 450, 10, 204
    steps, values = np.array(losses, dtype=float).T
    top = int(np.ceil(values.max()))
    x, y = left + steps / steps[-1] * (right - left), below - values / top * (below - above)
    parts = []
    for tick in range(top + 1):
        at = below - tick / top * (below - above)
        parts.append(f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{tick}</text>')
        parts.append(f'<path d="M{left} {at:.1f}H{right}" stroke="#dfe2e8"/>')
    for step in np.linspace(0, steps[-1], 5):
        at = left + step / steps[-1] * (right - left)
        parts.append(f'<text x="{at:.1f}" y="{below + 18}" text-anchor="middle">{step:.0f}</text>')
    parts.append(f'<text x="{width / 2}" y="{height - 4}" text-anchor="middle">step</text>')
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    parts.append(f'<polyline points="{line}" fill="none" stroke="#0072b2" stroke-width="2"/>')
    said = f"The loss falls from {values[0]:.2f} to {values[-1]:.2f} nats in {steps[-1]:.0f} steps."
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{said}" font-size="11" '
        f'font-family="system-ui, sans-serif">{"".join(parts)}</svg>'
    )


_DRAWN: Mapping[str, Callable[[Mapping[str, str], Setup], Iterator[str]]] = {
    "Generate": _generate,
    "Attention": _attention,
    "Inside": _inside,
    "What if": _what_if,
    "Train": _train,
}


def _probabilities(setup: Setup) -> np.ndarray:
    """(vocab,): of what comes next, or of what stands at an encoder's first mask."""
    logits = activations.next_token(setup.name, setup.tokens, setup.source, setup.interventions)
    return np.exp(log_softmax(logits))


def _bars(
    labels: Callable[[list[int]], list[str]], columns: Sequence[np.ndarray], titles: Sequence[str] = ("probability",)
) -> str:
    """Draw the likeliest tokens of one or two distributions, (vocab,) each, as bars."""
    best = np.unique([np.argsort(-column, kind="stable")[:CANDIDATES] for column in columns])
    order = best[np.argsort(-columns[0][best], kind="stable")].tolist()
    cell = '<span class="bar" data-style="width: {width:.2f}rem"></span>{words}'
    rows = [
        [f"<code>{escape(label)}</code>"]
        + [
            cell.format(width=6 * float(column[token]), words=escape(percent(float(column[token]))))
            for column in columns
        ]
        for token, label in zip(order, labels(order), strict=True)
    ]
    return _table(("token", *titles), rows)


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """names: texts. rows: HTML."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<table class="site-numbers"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _pixels(rows: Sequence[np.ndarray], seen: str) -> str:
    """rows: as `transformer.frontend.static_image.still` takes them. seen: what is on the picture."""
    png, width, _ = still(rows)
    data = base64.b64encode(png).decode()
    size = width * max(1, round(WIDTH / width))
    return _figure(f'<img src="data:image/png;base64,{data}" alt="{seen}" width="{size}" class="pixels">', seen)


def _figure(picture: str, words: str) -> str:
    return f'<figure class="together">{picture}<figcaption class="faint">{words}</figcaption></figure>'
