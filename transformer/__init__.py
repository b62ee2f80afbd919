"""A transformer written from the papers, every tensor of which can be looked at and changed."""

from .config import ModelConfig
from .hooks import ActivationCache, HookPoint
from .masks import causal_mask, padding_mask
from .models import DecoderOnly, KeyValueCache, build_model
from .positions import sinusoidal_encoding
from .registry import HookInfo, hook_points

__all__ = [
    "ActivationCache", "DecoderOnly", "HookInfo", "HookPoint", "KeyValueCache", "ModelConfig", "build_model",
    "causal_mask", "hook_points", "padding_mask", "sinusoidal_encoding",
]  # fmt: skip
