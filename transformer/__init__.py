"""A transformer written from the papers, every tensor of which can be looked at and changed."""

from importlib import import_module
from typing import Any

_CONTENTS = {
    ".api.client": ("Client",),
    ".checkpoints.card": ("Card",),
    ".checkpoints.exporting": ("export_pretrained",),
    ".checkpoints.folder": (
        "Checkpoint",
        "CheckpointEntry",
        "CheckpointError",
        "list_checkpoints",
        "load_checkpoint",
        "save_checkpoint",
    ),
    ".checkpoints.pretrained": ("load_pretrained",),
    ".config": ("ModelConfig",),
    ".data.batches": ("Batch", "TextBatches"),
    ".data.corpora": ("Corpus", "CorpusError", "load_corpus"),
    ".data.tasks": ("TASKS",),
    ".data.tokenizers": ("Tokenizer", "UnknownPiece", "UnknownTokenError"),
    ".frontend.saved_page": ("Shown", "show"),
    ".hooks": ("ActivationCache", "HookPoint"),
    ".inference.analysis": ("ScoreArithmetic", "induction_score", "score_arithmetic", "token_statistics"),
    ".inference.circuits": ("Circuit", "ov_circuit", "qk_circuit"),
    ".inference.effects": ("Effects", "silencing"),
    ".inference.generation": ("GenerationStep", "generate"),
    ".inference.head_measures": ("MEASURES", "HeadMeasure", "head_measures"),
    ".inference.intervention_codes": ("from_code", "to_code"),
    ".inference.interventions": ("Averaged", "Intervention", "Replaced", "Scaled", "Steered", "Weighed", "Without"),
    ".inference.patching": ("Patching", "patching"),
    ".inference.places_set": ("PlaceSet", "places_set"),
    ".inference.recompute": ("Deviation", "Pass", "deviations", "whole_pass"),
    ".inference.recording": ("Recording", "record"),
    ".inference.residual": ("Attribution", "LogitLens", "direct_logit_attribution", "logit_lens"),
    ".inference.sampling": ("Sampling", "choose_token", "sampling_distribution"),
    ".inference.whole_recording": ("record_pass",),
    ".inference.windows": ("Within", "in_window"),
    ".model.attention": ("attention",),
    ".model.caches": ("KeyValueCache",),
    ".model.equations": ("Equation", "equations"),
    ".model.masks": ("causal_mask", "padding_mask"),
    ".model.models": ("DecoderOnly", "EncoderDecoder", "build_model"),
    ".model.positions": ("sinusoidal_encoding",),
    ".model.registry": ("HookInfo", "attention_modules", "hook_points"),
    ".training.evaluation": ("evaluate_loss",),
    ".training.loop": ("NotFiniteError", "StepReport", "TrainingConfig", "TrainingRun", "train"),
}
"""What can be imported from here, by the module it is in. Each is imported when it is first asked for, so that whoever
needs little, such as the command line's help, doesn't wait for PyTorch."""
_MODULES = {name: module for module, names in _CONTENTS.items() for name in names}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_MODULES[name], __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
