"""A transformer written from the papers, every tensor of which can be looked at and changed."""

from .analysis import ScoreArithmetic, induction_score, score_arithmetic, token_statistics
from .checkpoints import (
    Card,
    Checkpoint,
    CheckpointEntry,
    CheckpointError,
    list_checkpoints,
    load_checkpoint,
    save_checkpoint,
)
from .config import ModelConfig
from .corpora import Corpus, CorpusError, load_corpus
from .generation import GenerationStep, Sampling, choose_token, generate, sampling_distribution
from .hooks import ActivationCache, HookPoint
from .masks import causal_mask, padding_mask
from .models import DecoderOnly, EncoderDecoder, build_model
from .positions import sinusoidal_encoding
from .registry import HookInfo, hook_points
from .stacks import KeyValueCache
from .tasks import TASKS
from .tokenizers import Tokenizer, UnknownPiece, UnknownTokenError
from .training import (
    Batch,
    NotFiniteError,
    Probe,
    StepReport,
    TextBatches,
    TrainingConfig,
    TrainingRun,
    evaluate_loss,
    train,
)

__all__ = [
    "TASKS",
    "ActivationCache",
    "Batch",
    "Card",
    "Checkpoint",
    "CheckpointEntry",
    "CheckpointError",
    "Corpus",
    "CorpusError",
    "DecoderOnly",
    "EncoderDecoder",
    "GenerationStep",
    "HookInfo",
    "HookPoint",
    "KeyValueCache",
    "ModelConfig",
    "NotFiniteError",
    "Probe",
    "Sampling",
    "ScoreArithmetic",
    "StepReport",
    "TextBatches",
    "Tokenizer",
    "TrainingConfig",
    "TrainingRun",
    "UnknownPiece",
    "UnknownTokenError",
    "build_model",
    "causal_mask",
    "choose_token",
    "evaluate_loss",
    "generate",
    "hook_points",
    "induction_score",
    "list_checkpoints",
    "load_checkpoint",
    "load_corpus",
    "padding_mask",
    "sampling_distribution",
    "save_checkpoint",
    "score_arithmetic",
    "sinusoidal_encoding",
    "token_statistics",
    "train",
]  # fmt: skip
