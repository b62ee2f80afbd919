"""Figures of the page Masks: small masks side by side, a padded batch, and predictions with and without a mask.

Arrays in, a plotly figure out. Shapes: query (row) and key (column) of a mask; batch (row) and pos of a batch.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from pages.ui.figures.attention import FOOT, LIGHT, MAX_LABEL, TOKENS, Note, note_traces, plotly_label
from pages.ui.figures.palette import CATEGORICAL, MONOSPACE, Theme, style

SIDE = 200
"""Pixels that a third of a page leaves for the cells of a mask and the labels of its rows."""
SPARE = 25
"""Pixels more in height, for where there is more room."""
CHARACTER = 0.62
"""Its width, in sizes of the font."""
TICK = 10.5
"""Pixels that a label needs across its line."""
ROW = 26
BAR = 24
STROKES = (("solid", "circle"), ("dash", "diamond"))


def mask_panel(
    mask: np.ndarray,
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    *,
    theme: Theme = LIGHT,
    offset: int = 0,
) -> go.Figure:
    """A mask, bool (query, key), True where a key may be seen, to stand beside others; a legend names its colours.

    offset: the position of row 0 and column 0 in the text. ValueError for labels that don't fit.
    """
    rows, columns = mask.shape
    if (len(query_labels), len(key_labels)) != (rows, columns):
        raise ValueError(f"{len(query_labels)} and {len(key_labels)} labels were given for a mask of {mask.shape}")
    places = {"x": np.arange(columns) + offset, "y": np.arange(rows) + offset}
    notes = [Note(mask, CATEGORICAL[0], "visible"), Note(~mask, theme.hidden, "hidden")]
    traces = note_traces(notes, places, TOKENS)
    longest = min(MAX_LABEL, max(map(len, query_labels)))
    side = SIDE - 12 * CHARACTER * longest
    across, foot = _token_axis(key_labels, places["x"], side / columns)
    down, _ = _token_axis(query_labels, places["y"], side / rows, upright=False)
    looks = "query: the token that looks" if side > 180 else "query"
    height = round(side + SPARE)
    layout = style(theme, height=height, title=None, bottom=34 + foot + FOOT, across="key", down=looks)
    layout["xaxis"] |= dict(title=dict(text="key: the token looked at" if side > 160 else "key", standoff=8))
    layout["xaxis"] |= across | dict(range=[offset - 0.5, offset + columns - 0.5], constrain="domain")
    layout["yaxis"] |= down | dict(range=[offset + rows - 0.5, offset - 0.5], constrain="domain")
    layout["yaxis"] |= dict(constraintoward="top", scaleanchor="x")
    # Plotly's own legend would put one name below the other where the plot is narrow.
    named = "&nbsp;&nbsp;&nbsp;".join(f'<span style="color:{n.color}">■</span> {n.words}' for n in notes)
    place = dict(x=0.5, xref="paper", xanchor="center", y=-(40 + foot) / height, yref="paper", yanchor="top")
    layout["annotations"] = [dict(text=named, showarrow=False, font=dict(size=12), **place)]
    return go.Figure(traces, layout | dict(dragmode=False))


def batch_picture(
    labels: Sequence[Sequence[str]],
    padding: np.ndarray,
    lines: Sequence[int],
    *,
    theme: Theme = LIGHT,
    selected: int | None = None,
) -> go.Figure:
    """A batch as a rectangle of tokens, a row a prompt; `padding` is bool (batch, pos), True for filler.

    lines: what each row is called. selected: the row to outline. ValueError for labels that don't fit.
    """
    rows, columns = padding.shape
    if [len(row) for row in labels] != [columns] * rows or len(lines) != rows:
        raise ValueError(f"{len(lines)} rows of labels were given for a batch of shape {padding.shape}")
    texts = np.array([[plotly_label(label) for label in row] for row in labels], dtype=object)
    notes = [Note(~padding, CATEGORICAL[0], "token"), Note(padding, theme.hidden, "padding")]
    inks = dict(token="#ffffff", padding=theme.foreground)
    places = {"x": np.arange(columns), "y": np.arange(rows)}
    where = "line %{y}, position %{x:d}<br><b>%{text}</b>"
    traces = note_traces(notes, places, where)
    for trace in traces:  # written in the cells, in a size that fits them
        own = np.where(np.isnan(trace["z"]), "", texts).tolist()  # what is not drawn is written all the same
        trace |= dict(text=own, texttemplate="%{text}", xgap=1, ygap=1)
        trace |= dict(textfont=dict(family=MONOSPACE, color=inks[trace["name"]]))
    layout = style(theme, height=ROW * rows, title=None, bottom=40 + FOOT, across="position", down="line")
    layout["xaxis"] |= dict(range=[-0.5, columns - 0.5], showgrid=False, dtick=max(1, -(-columns // 16)), tick0=0)
    layout["yaxis"] |= dict(range=[rows - 0.5, -0.5], showgrid=False)
    layout["yaxis"] |= dict(tickmode="array", tickvals=places["y"], ticktext=[str(line) for line in lines])
    if selected is not None:
        box = dict(type="rect", x0=-0.5, x1=columns - 0.5, y0=selected - 0.5, y1=selected + 0.5)
        layout["shapes"] = [box | dict(line=dict(color=theme.surface, width=5)),
                            box | dict(line=dict(color=theme.foreground, width=2.5))]  # fmt: skip
    foot = dict(x=0.5, xanchor="center", y=0, yref="container", yanchor="bottom")
    layout["legend"] = dict(orientation="h", itemclick=False, itemdoubleclick=False, **foot)
    return go.Figure([*traces, *_swatches(notes)], layout | dict(dragmode=False))


def lines_by_position(
    values: Mapping[str, np.ndarray],
    labels: Sequence[str],
    following: Sequence[str],
    *,
    unit: str,
    theme: Theme = LIGHT,
    offset: int = 0,
    top: float | None = None,
) -> go.Figure:
    """One line for each of `values`, by the token that was read; each may end before the tokens do.

    following: what came after each token, "?" where that isn't known. top: where the axis ends; None for where the
    numbers end, but no lower than 0.1.
    """
    places = np.arange(len(labels)) + offset
    words = [f"after {plotly_label(label)}, before {plotly_label(after)}"
             for label, after in zip(labels, following, strict=True)]  # fmt: skip
    traces = [
        dict(
            name=name,
            x=places[: len(line)],
            y=line,
            text=words[: len(line)],
            mode="lines+markers",
            line=dict(color=color, dash=dash, width=2),
            marker=dict(symbol=symbol, size=6),
            hovertemplate=f"position %{{x:d}}: %{{text}}<br><b>{unit} %{{y:.4~g}}</b> {name}<extra></extra>",
        )
        for (name, line), color, (dash, symbol) in zip(values.items(), CATEGORICAL, STROKES, strict=False)
    ]
    across, foot = _token_axis(labels, places, 300 / len(labels))
    layout = style(theme, height=200, title=None, top=34, bottom=34 + foot, across="token read", down=unit)
    layout["xaxis"] |= across | dict(range=[places[0] - 0.5, places[-1] + 0.5])
    highest = top or max([0.1, *(float(line.max()) for line in values.values() if len(line))])
    layout["yaxis"] |= dict(range=[-0.03 * highest, 1.05 * highest])
    legend = dict(orientation="h", x=0, xanchor="left", y=1.01, yanchor="bottom")
    return go.Figure(traces, layout | dict(showlegend=True, legend=legend, dragmode=False))


def candidate_bars(
    labels: Sequence[str], probabilities: np.ndarray, *, limit: float, color: str, theme: Theme = LIGHT
) -> go.Figure:
    """Tokens and their probabilities as bars, the likeliest on top; `limit` is where the axis ends."""
    places = np.arange(len(labels))
    texts = [plotly_label(label) for label in labels]
    bars = dict(
        type="bar",
        orientation="h",
        x=probabilities,
        y=places,
        text=[f"{value:.1%}" if value >= 5e-4 else "< 0.1%" for value in probabilities],
        textposition="outside",
        cliponaxis=False,
        customdata=texts,
        marker=dict(color=color),
        hovertemplate="%{customdata}<br><b>probability %{x:.6~g}</b><extra></extra>",
    )
    layout = style(theme, height=BAR * len(labels), title=None, across="probability", down="")
    layout["xaxis"] |= dict(range=[0, 1.25 * limit], nticks=5, tickformat=".0%" if limit > 0.02 else ".1%")
    layout["yaxis"] |= dict(range=[len(labels) - 0.5, -0.5], showgrid=False, ticks="")
    layout["yaxis"] |= dict(tickmode="array", tickvals=places, ticktext=texts)
    layout["yaxis"] |= dict(tickfont=dict(family=MONOSPACE, size=13))
    return go.Figure([bars], layout | dict(bargap=0.3, dragmode=False))


def _token_axis(labels: Sequence[str], places: np.ndarray, pitch: float, upright: bool = True) -> tuple[dict, int]:
    """A numeric axis that reads as tokens, as many as `pitch` pixels a cell leave room for, and their height."""
    texts = [plotly_label(label) for label in labels]
    step = int(np.ceil(TICK / pitch))
    size = int(np.clip(pitch * step, 9, 12))
    longest = min(MAX_LABEL, max(map(len, labels))) * CHARACTER * size
    turned = upright and longest > pitch * step
    axis = dict(
        tickmode="array",
        tickvals=places[::step],
        ticktext=texts[::step],
        tickangle=-90 if turned else 0,
        tickfont=dict(family=MONOSPACE, size=size),
        ticks="",
        showgrid=False,
        # Hover labels read this where a tick was left out.
        labelalias={str(place): text for place, text in zip(places.tolist(), texts, strict=True)},
    )
    return axis, round(longest + 8 if turned else 1.3 * size)


def _swatches(notes: Sequence[Note]) -> list[dict]:
    """What the legend shows of each note, whether or not it has cells."""
    return [
        dict(
            type="scatter",
            x=[None],
            y=[None],
            name=note.words,
            mode="markers",
            marker=dict(symbol="square", size=12, color=note.color),
            showlegend=True,
        )
        for note in notes
    ]
