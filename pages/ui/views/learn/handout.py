"""Prints a lesson: a part for each question, to be folded so that the next stays hidden, then the answers.

What is right is measured when the handout is made, as it is in the lesson.
"""

from html import escape

from pages.ui.frame import widgets
from pages.ui.lessons.expressions import ExpressionError, Words
from pages.ui.lessons.lesson import Lesson, Step
from pages.ui.lessons.measure_setup import Setup
from pages.ui.lessons.measured_values import MeasuredValues
from pages.ui.lessons.own_lessons import file_stem
from pages.ui.markdown import passage
from pages.ui.printable_html import as_html, document, inline
from pages.ui.views.learn import attention_cells, lesson_export
from pages.ui.views.learn.answer_wording import Wording, wording_of
from pages.ui.views.learn.attention_svg import pattern_svg
from pages.ui.views.learn.still_view import attention_picture

FOLD = " Answer before you go on: fold the sheet here."
LATER = "This depends on your own training: open the lesson in the app."


def offer(lesson: Lesson, key: str = "save_handout") -> None:
    """The buttons that download a lesson as a handout, and as a file of its own, which are made at the click."""
    widgets.download_button(
        "Download the handout",
        lambda: handout(lesson).encode(),
        f"{file_stem(lesson)}.html",
        "text/html",
        key=key,
        icon="print",
        type="tertiary",
        help="To print: a part for each question, to be folded, and the answers on pages of their own.",
    )
    lesson_export.offer(lesson, f"{key}_live")


def handout(lesson: Lesson) -> str:
    """A lesson as one HTML page, which needs no network and prints well."""
    aims = "".join(f"<li>{inline(aim)}</li>" for aim in lesson.aims)
    header = [
        f"<h1>{inline(lesson.title)}</h1>",
        f'<p class="faint">About {lesson.minutes} minutes. Name: ______________________</p>',
        f"<p>After this lesson you can:</p><ul>{aims}</ul>" if aims else "",
    ]
    parts, answers, drawn = [header], [], ""  # each ends in a question, which the next may answer
    for number, step in enumerate(lesson.steps, 1):
        values = MeasuredValues(step.measures)
        picture = _picture(step)
        new, drawn = ("" if picture == drawn else picture), picture or drawn  # the same isn't drawn twice in a row
        ends = step.question and number < len(lesson.steps)
        wording = wording_of(lesson, number - 1)
        parts[-1].append(_asked(number, step, wording, values, new, ends=bool(ends)))
        if ends:
            parts.append([])
        if step.question or step.to_try:
            answers.append(_answer(number, step, wording, values, new))
    body = ['<section class="part">{}</section>'.format("\n".join(filter(None, part))) for part in parts]
    if answers:
        body += ['<h1 class="new-page">Answers</h1>', *answers]
    return document(lesson.title, "\n".join(body))


def _asked(
    number: int, step: Step, wording: Wording | None, values: MeasuredValues, picture: str, *, ends: bool
) -> str:
    """A step up to its question. picture: what its view shows. ends: whether another part follows."""
    parts = [f"<h2>{number}. {inline(step.title)}</h2>", _words(step.words, values)]
    if step.view and step.view.opened == "before":
        parts.append(picture)
    if wording:
        parts.append(_question(wording))
    where = f"In the app: the page {escape(step.view.page)}, as this step opens it." if step.view else ""
    parts.append(f'<p class="{"faint fold" if ends else "faint"}">{where}{FOLD if ends else ""}</p>')
    return "\n".join(filter(None, parts))


def _answer(number: int, step: Step, wording: Wording | None, values: MeasuredValues, picture: str) -> str:
    """What is right, why, and what to try once it is known."""
    parts = [f"<h3>{number}. {inline(step.title)}</h3>"]
    if wording:
        parts += _right(step, wording, picture)
    if step.to_try:
        parts.append(f"<p><strong>Try it.</strong></p>{_words(step.to_try, values)}")
    return "\n".join(filter(None, parts))


def _right(step: Step, wording: Wording, picture: str) -> list[str]:
    if (correct := wording.correct()) is None:
        return [f"<p>{LATER}</p>"]
    try:
        correction = f"<p><strong>Correct: {inline(wording.markdown(correct))}</strong></p>"
        if wording.question.kind == "order" and isinstance(correct, list):
            items = [inline(wording.question.options[at].filled(wording.values, passage)) for at in correct]
            correction = f"<ol>{''.join(f'<li>{item}</li>' for item in items)}</ol>"
    except ExpressionError:
        return [f"<p>{LATER}</p>"]
    return [
        correction,
        _words(step.reveal, wording.values) if step.reveal else "",
        picture if step.view and step.view.opened == "after" else "",
    ]


def _question(wording: Wording) -> str:
    question, values = wording.question, wording.values
    try:
        text = inline(question.text.filled(values, passage))
        options = [inline(option.filled(values, passage)) for option in question.options]
    except ExpressionError:
        return f'<div class="question"><p>{LATER}</p></div>'
    match question.kind:
        case "choose" | "order":
            kind = "options to-order" if question.kind == "order" else "options"
            how = f'<ul class="{kind}">{"".join(f"<li>{option}</li>" for option in options)}</ul>'
        case "number":
            unit = f" {escape(question.unit)}" if question.unit else ""
            how = f"<p>Your answer: __________{unit}</p>"
        case "token":
            labels = wording.setup.tokenizer.labels(wording.setup.read)
            how = f"<p>Circle it: {' '.join(f'<code>{escape(label)}</code>' for label in labels)}</p>"
        case _:
            how = _cells(wording.picture)
    return (
        f'<div class="question"><p>{text}</p>{how}<p class="faint">Why do you think so?</p>'
        '<div class="lines"></div></div>'
    )


def _cells(picture: attention_cells.Picture | None) -> str:
    """The empty cells of a head, one of which is to be marked."""
    if picture is None:
        return "<p>Query: __________ Key: __________</p>"
    drawn = pattern_svg(None, picture.queries, picture.keys, causal=picture.causal)
    return f"<p>Mark the cell: rows are queries, columns are keys.</p><figure>{drawn}</figure>"


def _words(words: Words, values: MeasuredValues) -> str:
    try:
        return as_html(words.filled(values, passage))
    except ExpressionError:
        return f"<p>{LATER}</p>"


def _picture(step: Step) -> str:
    """The head that a view of the page Attention shows, if it is small enough."""
    view = step.view
    link = view.parameters if view else {}
    if not view or view.page != "Attention" or not {"layer", "head"} <= link.keys():
        return ""
    try:
        return attention_picture(link, Setup.of(link, {}), int(link["layer"]), int(link["head"]))
    except (ExpressionError, ValueError, IndexError):
        return ""  # a page shows what is wrong with such a view; on paper it is left out
