"""Opens the page Masks in tests, and reads what it shows: the frontend above, and Python in the folds below."""

import copy
import json
from dataclasses import replace
from urllib.parse import urlencode

import numpy as np
import torch

from pages.ui.models import library
from tests import app_driver as app
from tests.app_driver import checked, components, named, start
from tests.frontend_calls import Looked, frontend
from tests.tiny_models import save_encoder, save_tiny, save_translator

SUGGESTED = "KING:\nROMEO:\nBut, soft\nTo be, or not"
KINDS = {
    "shakespeare": {},
    "padded": {"pad_token_id": 0},
    "learned": {"positions": "learned", "n_layers": 1},
    "sinusoidal": {"positions": "sinusoidal", "norm": "post"},
    "blind": {"positions": "none", "n_layers": 3},
    "average": {"attention": "uniform", "n_heads": 1},
    "bigram": {"n_layers": 0},
}
PREDICTIONS, COSTS, CELLS, BATCH_MASKS = range(4)
"""The tables that Python draws, in the order of the page."""


def save_kinds(folder):
    """A model of each kind, at random weights that are far enough from zero to tell one token from another."""
    for seed, (name, shape) in enumerate(KINDS.items()):
        save_tiny(folder, name, title=name.capitalize(), seed=seed, **shape)
    save_translator(folder)
    save_encoder(folder, attention_windows=(3, 0))
    return folder


def visit(**link):
    """A visitor who opens the page, perhaps by a link, and all that is folded there."""
    return app.open_folds(start("Masks", **link))


def editor(at):
    return named(at.main.text_area, "Prompts, one per line")


def type_batch(at, text):
    return checked(editor(at).set_value(text).run())


def masks_of(at):
    """What the browser gets of the batch's masks."""
    (found,) = components(at, "headsup_masks")
    return json.loads(found.json)["panels"]


def cells(panel):
    """A drawn mask, True where visible; as wide and as high as there are labels."""
    return (np.array(list(panel["mask"])) != "0").reshape((len(panel["labels"]),) * 2)


def shown(**link):
    """What the frontend shows of a link."""
    link = {"model": "shakespeare", **link}
    state = Looked(urlencode({name: str(value) for name, value in link.items()}))
    return frontend("../../tests/frontend/shown_masks.mjs", "shownMasks", state, ask=app.ask)


def table(at, index):
    return app.open_drawers(at).dataframe[index].value


def loss(at, name):
    """The mean loss of a reading, as the page says it."""
    return float(named(at.metric, f"Mean loss {name}").value.removesuffix(" nats"))


def tokens_of(name, text):
    return library.tokenizer(name).encode(text)


def distributions(name, tokens, *, causal, source=None, padding=True):
    """The model's own probabilities, (pos, vocab), from a copy of it whose attention is causal or is not.

    padding: whether it knows its padding token.
    """
    model = copy.deepcopy(library.model(name).model)
    for block in (model.decoder if source else model).blocks:
        block.attn.causal = causal
    if not padding:
        model.encoder.config = replace(model.encoder.config, pad_token_id=None)
    inputs = [torch.tensor([part]) for part in (source, tokens) if part]
    with torch.no_grad():
        return model(*inputs)[0].double().softmax(-1).numpy()


def masks_used(name, tokens):
    """The masks that a model's layers compute with: (batch, head, query, key), or (query, key), as 0 and 1."""
    model = library.model(name).model
    with torch.no_grad():
        _, cache = model.run_with_cache(torch.tensor(tokens if isinstance(tokens[0], list) else [tokens]))
    return [cache["mask", layer].numpy().astype(int) for layer in range(model.config.n_layers)]
