"""A transformer written from the papers, every tensor of which can be looked at and changed."""

from .api.client import Client
from .checkpoints.card import Card
from .checkpoints.exporting import export_pretrained
from .checkpoints.folder import (
    Checkpoint,
    CheckpointEntry,
    CheckpointError,
    list_checkpoints,
    load_checkpoint,
    save_checkpoint,
)
from .checkpoints.pretrained import load_pretrained
from .config import ModelConfig
from .data.batches import Batch, TextBatches
from .data.corpora import Corpus, CorpusError, load_corpus
from .data.tasks import TASKS
from .data.tokenizers import Tokenizer, UnknownPiece, UnknownTokenError
from .frontend.saved_page import Shown, show
from .hooks import ActivationCache, HookPoint
from .inference.analysis import ScoreArithmetic, induction_score, score_arithmetic, token_statistics
from .inference.circuits import Circuit, ov_circuit, qk_circuit
from .inference.effects import Effects, silencing
from .inference.generation import GenerationStep, generate
from .inference.head_measures import MEASURES, HeadMeasure, head_measures
from .inference.intervention_codes import from_code, to_code
from .inference.interventions import Averaged, Intervention, Replaced, Scaled, Steered, Weighed, Without
from .inference.patching import Patching, patching
from .inference.places_set import PlaceSet, places_set
from .inference.recompute import Deviation, Pass, deviations, whole_pass
from .inference.recording import Recording, record
from .inference.residual import Attribution, LogitLens, direct_logit_attribution, logit_lens
from .inference.sampling import Sampling, choose_token, sampling_distribution
from .inference.whole_recording import record_pass
from .inference.windows import Within, in_window
from .model.attention import attention
from .model.caches import KeyValueCache
from .model.equations import Equation, equations
from .model.masks import causal_mask, padding_mask
from .model.models import DecoderOnly, EncoderDecoder, build_model
from .model.positions import sinusoidal_encoding
from .model.registry import HookInfo, attention_modules, hook_points
from .training.evaluation import evaluate_loss
from .training.loop import NotFiniteError, StepReport, TrainingConfig, TrainingRun, train

__all__ = [
    "MEASURES",
    "TASKS",
    "ActivationCache",
    "Attribution",
    "Averaged",
    "Batch",
    "Card",
    "Checkpoint",
    "CheckpointEntry",
    "CheckpointError",
    "Circuit",
    "Client",
    "Corpus",
    "CorpusError",
    "DecoderOnly",
    "Deviation",
    "Effects",
    "EncoderDecoder",
    "Equation",
    "GenerationStep",
    "HeadMeasure",
    "HookInfo",
    "HookPoint",
    "Intervention",
    "KeyValueCache",
    "LogitLens",
    "ModelConfig",
    "NotFiniteError",
    "Pass",
    "Patching",
    "PlaceSet",
    "Recording",
    "Replaced",
    "Sampling",
    "Scaled",
    "ScoreArithmetic",
    "Shown",
    "Steered",
    "StepReport",
    "TextBatches",
    "Tokenizer",
    "TrainingConfig",
    "TrainingRun",
    "UnknownPiece",
    "UnknownTokenError",
    "Weighed",
    "Within",
    "Without",
    "attention",
    "attention_modules",
    "build_model",
    "causal_mask",
    "choose_token",
    "deviations",
    "direct_logit_attribution",
    "equations",
    "evaluate_loss",
    "export_pretrained",
    "from_code",
    "generate",
    "head_measures",
    "hook_points",
    "in_window",
    "induction_score",
    "list_checkpoints",
    "load_checkpoint",
    "load_corpus",
    "load_pretrained",
    "logit_lens",
    "ov_circuit",
    "padding_mask",
    "patching",
    "places_set",
    "qk_circuit",
    "record",
    "record_pass",
    "sampling_distribution",
    "save_checkpoint",
    "score_arithmetic",
    "show",
    "silencing",
    "sinusoidal_encoding",
    "to_code",
    "token_statistics",
    "train",
    "whole_pass",
]
