"""Writers for tests: begun on tiny models, written on and seen, and a model that must not run."""

from contextlib import contextmanager

import numpy as np

from pages.ui.models import library
from pages.ui.models.shown_text import Looked
from pages.ui.models.writer import Writer
from tests.tiny_models import save_pair, save_tiny, save_translator
from transformer import Sampling, generate, sampling_distribution

SAMPLING = Sampling(temperature=0.9, seed=7)
GREEDY = Sampling(temperature=0)
FOREVER = 10**6
HERE = Looked("self", 0)


def save_models(folder):
    save_pair(folder)
    save_tiny(folder, "no-layers", n_layers=0)
    save_translator(folder)
    return folder


def begin(prompt="ROMEO:\n", model="shakespeare", interventions=()):
    writer = Writer()
    assert writer.begin(model, tuple(library.tokenizer(model).encode(prompt)), interventions=interventions)
    return writer


def written(writer, tokens, sampling=SAMPLING, looked=HERE):
    """Write so many tokens, and see them."""
    goal = writer.length + tokens
    writer.aim(goal)
    writer.write(sampling, looked, FOREVER)
    writer.commit(min(goal, writer.branch.end))
    return writer


def expected(prompt, tokens, sampling=SAMPLING, model="shakespeare", interventions=()):
    """What the engine writes after these tokens."""
    steps = generate(library.model(model).model, prompt, max_new_tokens=tokens, sampling=sampling,
                     interventions=interventions)  # fmt: skip
    return [step.token_id for step in steps]


def ids(writer):
    return [token.id for token in writer.written]


def all_ids(writer):
    return [token.id for token in writer.branch.tokens]


def statistics(writer):
    return [(token.id, token.rank, token.probability, token.entropy) for token in writer.written]


def assert_statistics_equal(found, wanted):
    assert [row[:2] for row in found] == [row[:2] for row in wanted]
    assert np.allclose([row[2:] for row in found], [row[2:] for row in wanted], atol=1e-5)


@contextmanager
def the_model_at_rest(name="shakespeare"):
    """As long as this lasts, a run of the model is an error."""

    def refuse(*_):
        raise AssertionError("the model was run")

    handle = library.model(name).model.register_forward_pre_hook(refuse)
    try:
        yield
    finally:
        handle.remove()


def is_drawn(token, logits, sampling):
    """Whether its random number falls into its share, the shares standing in the vocabulary's order."""
    if sampling.temperature == 0:
        return token.point == 0 and token.id == int(logits.argmax())
    ends = [0.0, *sampling_distribution(logits, sampling).cumsum(0).tolist()]
    return ends[token.id] - 1e-9 <= token.point <= ends[token.id + 1] + 1e-9
