"""Defines the models and questions that the tests of the API share."""

from tests.frontend_calls import frontend
from tests.helpers import tiny_model
from transformer import Checkpoint, ModelCard, Recording, Tokenizer
from transformer.api import outlines, tensors
from transformer.api.open_models import OpenModel

SHAPES = {
    "rotary": {"positions": "rotary"},
    "sinusoidal": {"positions": "sinusoidal"},
    "learned": {"positions": "learned", "attention_bias": False},
    "uniform": {"attention": "uniform"},
    "unconnected": {"residual": False},
    "post-norm": {"norm": "post"},
    "attention alone": {"d_ff": 0, "norm": "none"},
}
BOTH = {"architecture": "encoder-decoder", "n_encoder_layers": 3}
TOKENS, SOURCE = (3, 1, 4, 1, 5, 3), (2, 7, 1, 2)
OF_BOTH = ("sinusoidal", "uniform", "post-norm")
EVERY_KIND = {shape: fields for shape, fields in SHAPES.items() if shape not in OF_BOTH}
EVERY_KIND |= {"no layers, no norm": {"n_layers": 0, "norm": "none", "positions": "none"}}
EVERY_KIND |= {f"both, {shape}": SHAPES[shape] | BOTH for shape in OF_BOTH}


def open_model(fields: dict) -> OpenModel:
    tokenizer = Tokenizer.of_characters("abcdefghijk")
    checkpoint = Checkpoint(tiny_model(**fields), tokenizer, ModelCard(title="Tiny"))
    return OpenModel("tiny", f"tiny {sorted(fields.items())}", checkpoint)


def infos(model: OpenModel, tokens=TOKENS, source=()):
    return tensors.infos_of(model.checkpoint.model.config, len(tokens), len(source))


def have(model: OpenModel, names, tokens=TOKENS, source=(), interventions=()):
    """Tensors of these names, each perhaps with an index."""
    there = infos(model, tokens, source)
    return tensors.tensors(model, tokens, source, [tensors.part_of(name, there) for name in names], interventions)


def parts_of_attention(model: OpenModel, source, kind, *wanted, tokens=TOKENS, interventions=()):
    """Heads and rows of an attention, by the names that the page Attention asks for them by."""
    outline = outlines.overview(model, tokens, source, kind, interventions)
    names = frontend("attention/tensor_names.js", "namesOf", Recording.from_bytes(outline.to_bytes()).metadata, wanted)
    return have(model, names, tokens, source, interventions)
