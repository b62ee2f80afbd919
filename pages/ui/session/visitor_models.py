"""Keeps one visitor's models, trained or uploaded, and those that links have shared."""

from pathlib import Path

from pages.ui.session.session_store import session_record
from pages.ui.session.visitor_share import visitor_share
from transformer import Checkpoint, CheckpointEntry
from transformer.api.model_store import PREFIX, checkpoint_bytes, is_token, model_store
from transformer.checkpoints.folder import number_of_weights

MAX_MODELS, MAX_TOTAL_BYTES = 8, 128_000_000
"""Models a visitor can have at once, and bytes of all their weights."""
MAX_SHARED = 8
"""Shared models that are listed; beyond it, the one opened first is removed."""


class StorageFullError(Exception):
    """The visitor has no storage left for another model; the message says what to do."""


def is_own(name: str) -> bool:
    """Whether a model's name is the token of somebody's own."""
    return name.startswith(PREFIX)


def own_models() -> dict[str, CheckpointEntry]:
    """The visitor's own models by token, oldest first; those that have gone from the store are not among them."""
    return {token: entry for token, entry in session_record().models.items() if token in model_store()}


def shared_models() -> dict[str, CheckpointEntry]:
    """The models of others that links have brought, by token."""
    return {token: entry for token, entry in session_record().shared.items() if token in model_store()}


def storage_problem(more: int = 0) -> str | None:
    """Why another model doesn't fit, in a sentence for the visitor; None if it does. more: bytes of its weights."""
    sizes = [4 * number_of_weights(entry.config) for entry in own_models().values()]
    if len(sizes) >= MAX_MODELS:
        return f"You have {MAX_MODELS} models, the maximum. Remove one under “Your models as files” first."
    if sizes and sum(sizes) + more > MAX_TOTAL_BYTES:
        return (
            f"Your models may have {MAX_TOTAL_BYTES / 1e6:,.0f} MB together, and this one doesn't fit any more. "
            "Remove one under “Your models as files” first."
        )
    return None


def add_model(checkpoint: Checkpoint) -> str:
    """Add a model to the visitor's; return its token, which nobody can guess.

    Raises: NoRoomError while the visitor has too many; CheckpointError if it can't be kept at all.
    """
    if problem := storage_problem(checkpoint_bytes(checkpoint)):
        raise StorageFullError(problem)
    token = model_store().put(checkpoint, visitor_share())
    session_record().models[token] = _entry(token, checkpoint)
    return token


def remove_model(token: str) -> None:
    """Delete one of the visitor's models, for everybody."""
    session_record().models.pop(token, None)
    model_store().forget(token)


def add_shared_model(token: str) -> None:
    """List the visitor-made model that a link names, if it exists and isn't listed yet."""
    record = session_record()
    if not is_token(token) or token in record.models or token in record.shared:
        return
    if (checkpoint := model_store().get(token)) is not None:
        record.shared[token] = _entry(token, checkpoint)
        while len(record.shared) > MAX_SHARED:
            del record.shared[next(iter(record.shared))]


def restore_models(tokens: list[str]) -> None:
    """List the models again whose tokens a tab has kept, if they still exist."""
    record = session_record()
    for token in tokens[:MAX_MODELS]:
        checkpoint = None if token in record.models else model_store().get(token)
        if checkpoint is not None and not storage_problem(checkpoint_bytes(checkpoint)):
            record.models[token] = _entry(token, checkpoint)
        record.shared.pop(token, None)


def _entry(token: str, checkpoint: Checkpoint) -> CheckpointEntry:
    """A model as `list_checkpoints` would list it."""
    return CheckpointEntry(token, Path(token), checkpoint.card, checkpoint.model.config)
