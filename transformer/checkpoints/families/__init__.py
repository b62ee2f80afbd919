"""Model families from Hugging Face: each file maps one family's configuration and weights to ours and back."""

from .bart import BART, MBART
from .bert import BERT
from .bloom import BLOOM
from .cohere import COHERE, COHERE2
from .distilbert import DISTILBERT
from .falcon import FALCON
from .gemma import GEMMA, GEMMA2, GEMMA3
from .glm import GLM, GLM4
from .gpt2 import GPT2
from .gpt_bigcode import GPT_BIGCODE
from .gpt_neo import GPT_NEO
from .gpt_neox import GPT_NEOX
from .gptj import GPTJ
from .granite import GRANITE
from .llama import LLAMA
from .marian import MARIAN, PEGASUS
from .mistral import MINISTRAL, MINISTRAL3, MISTRAL
from .modernbert import MODERNBERT
from .olmo import OLMO, OLMO2, OLMO3
from .opt import OPT
from .phi import PHI
from .phi3 import PHI3
from .qwen2 import QWEN2
from .qwen3 import QWEN3
from .roberta import ROBERTA
from .smollm3 import SMOLLM3
from .stablelm import STABLELM
from .starcoder2 import STARCODER2
from .t5 import MT5, T5

_OF_MISTRAL = (MISTRAL, MINISTRAL, MINISTRAL3)
_OF_LLAMA = (LLAMA, *_OF_MISTRAL, QWEN2, QWEN3, SMOLLM3, PHI3, GEMMA, GEMMA2, GEMMA3, OLMO, OLMO2, OLMO3)
_OTHERS = (GRANITE, COHERE, COHERE2, GLM, GLM4, PHI, STABLELM, STARCODER2, FALCON, BLOOM, OPT, GPT_BIGCODE)
_ENCODERS = (BERT, ROBERTA, DISTILBERT, MODERNBERT)
_PAIRS = (T5, MT5, BART, MBART, MARIAN, PEGASUS)
_DECODERS = (GPT2, GPT_NEO, GPT_NEOX, GPTJ, *_OF_LLAMA, *_OTHERS)
FAMILIES = {family.model_type: family for family in (*_DECODERS, *_ENCODERS, *_PAIRS)}
"""By config.json's model_type."""
