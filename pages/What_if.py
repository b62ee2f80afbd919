"""What if: change a part of the model, and see what becomes of what it says."""

from pages.ui.shell import widgets
from pages.ui.shell.choices import QUESTIONS
from pages.ui.shell.sidebar import finish, open_page
from pages.ui.views.what_if import before, beside, ladder, needed, traced

VIEWS = {
    "before": ("Before and after", before.show),
    "needed": ("What is needed here", needed.show),
    "traced": ("Where does it know it from", traced.show),
    "beside": ("Side by side", beside.show),
    "ladder": ("The ladder", ladder.show),
}

session = open_page(
    "What if",
    "Looking shows what is there; taking something away shows what it is for. Every number here is what the model "
    "computes once it is changed.",
)
session.require_tokens()
question = widgets.segmented_control("Question", QUESTIONS, "question", lambda name: VIEWS[name][0])
VIEWS[question][1](session)
finish()
