"""Runs the page Inside: the whole forward pass as one picture, down to every number."""

from pages.ui.frame.page import session
from pages.ui.views.inside import compute_ahead, offer_numbers
from pages.ui.views.inside_export import offer_page

current = session()
current.require_tokens()
inputs = current.text.pass_over(current.text.read())
compute_ahead(inputs)
offer_page(current, inputs)
offer_numbers(current, inputs)
