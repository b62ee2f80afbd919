"""Draws the view Ablation: a map of effects, and the predictions with and without the changes."""

from pages.ui.frame.page import Session
from pages.ui.views.side_by_side import side_by_side
from pages.ui.views.what_if import ablation_map, before_and_after, python_code
from pages.ui.views.what_if.shared import choose_input, suggest_attention_model


def show(session: Session) -> None:
    has_parts = session.config.n_layers > 0
    if not has_parts and not session.interventions:
        suggest_attention_model(session)
        return
    model_input = choose_input(session)
    if not has_parts:
        pair, mapped = before_and_after.next_token_pair(session, model_input), None
        if pair:
            before_and_after.next_token(session, model_input, pair)
    else:
        parts, answer = side_by_side("ablation", 2)
        with answer:  # first, for it is there at once
            pair = before_and_after.next_token_pair(session, model_input)
            if pair:
                before_and_after.next_token(session, model_input, pair)
        with parts:
            mapped = ablation_map.show(session, model_input, int(pair.unchanged.argmax()) if pair else None)
        if pair and mapped and not session.interventions:
            with answer:
                before_and_after.suggest_ablations(session, model_input, mapped.ablation)
    if pair and session.interventions:
        before_and_after.what_changed(session, model_input, pair)
        written = before_and_after.generated_text if session.config.is_causal else before_and_after.filled_text
        written(session, model_input)
    if pair:
        before_and_after.offer_table(session, pair)
    if mapped:
        ablation_map.offer_table(session, mapped)
    python_code.ablation(session, model_input, before_and_after.LENGTH, mapped)
