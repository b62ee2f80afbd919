"""Model families from Hugging Face: each file maps one family's configuration and weights to ours and back."""

from .gpt2 import GPT2
from .gpt_neo import GPT_NEO
from .gpt_neox import GPT_NEOX
from .llama import LLAMA
from .qwen2 import QWEN2

FAMILIES = {family.model_type: family for family in (GPT2, GPT_NEO, GPT_NEOX, LLAMA, QWEN2)}
"""By what config.json calls them."""
