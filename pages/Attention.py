"""Runs the page Attention: every head's weights, and how each weight is computed."""

from pages.ui.frame.page import session
from pages.ui.models import attention_kinds
from pages.ui.views.attention import compute_ahead, text_of
from pages.ui.views.attention_export import offer_files

current = session()
current.require_tokens()
if kind := attention_kinds.shown_kind(current.config, current.visitor.attention):
    inputs = current.text.pass_over(text_of(current), kind)
    compute_ahead(inputs)
    offer_files(current, inputs)
