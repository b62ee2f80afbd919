"""Draws the page Generate for a model that reads in both directions: it fills masks instead of writing on."""

from pages.ui.components.instruments import instrument, request_of
from pages.ui.frame.page import Session
from pages.ui.frame.saved_view import open_with_lesson_view
from pages.ui.models import attention_kinds
from transformer import attention_modules

KEY = "filling"


def show(session: Session) -> None:
    """The instrument; the tab keeps what has been filled in."""
    current, text, config = session.visitor, session.text, session.config
    modules = attention_modules(config).get("self", [])

    instrument(
        "filling",
        key=KEY,
        model=text.model,
        request=request_of(text.model, text.prompt, (), text.interventions, 0),
        about={
            "id": text.identity,
            "prompt": text.prompt,
            "mask": text.model.checkpoint.card.mask_token_id,
            "separator": config.separator_token_id,
            "modules": modules,
            "layers": attention_kinds.layer_count(config, "self") if modules else 0,
            "heads": config.n_heads if modules else 0,
            "opening": {"layer": current.layer or 0, "head": current.head or 0},
            "frozen": session.prompt != current.prompt,
        },
        on_navigate=open_with_lesson_view,
    )
