"""Tests generation: caches, sampling, sources, and reported probabilities."""

import itertools
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.helpers import any_configs, close, some_inputs, tiny_encoder_decoder, tiny_model
from transformer import Sampling, choose_token, generate, sampling_distribution
from transformer.inference.context_windows import window_start
from transformer.inference.generation import write_greedily
from transformer.inference.sampling import random_points

PROMPT, SOURCE = [1, 2, 3], [3, 5, 7, 2, 1, 4, 6, 3]  # as long as the context
GREEDY = Sampling(temperature=0)


def write(model, prompt=PROMPT, n: int = 6, **options) -> list[int]:
    return [step.token_id for step in generate(model, prompt, max_new_tokens=n, **options)]


class TestTheCache:
    @settings(max_examples=20)
    @given(
        any_configs() | any_configs(context_length=9),
        st.lists(st.integers(0, 10), min_size=1, max_size=6),
        st.lists(st.integers(0, 10), min_size=1, max_size=12),
        st.sampled_from([Sampling(seed=5), Sampling(0.3, top_k=2, top_p=0.5, seed=1), GREEDY]),
    )
    def test_every_step_is_what_a_pass_over_its_window_gives(self, config, source, sequence, sampling):
        """Also past the context length, where the window moves, and where source or text holds the token that pads.
        What is reported is the model's own: temperature 1 and nothing cut off, whatever the sampling does."""
        model, n = tiny_model(config), config.context_length + 3
        source = source if config.architecture == "encoder-decoder" else None
        steps = list(generate(model, sequence, max_new_tokens=n, sampling=sampling, source=source))
        assert len(steps) == n
        for step in steps:
            assert step.position == len(sequence)
            window = sequence[window_start(len(sequence), config.context_length) :]
            with torch.no_grad():
                logits = model(*(torch.tensor([each]) for each in (source, window) if each))[0, -1]
            torch.testing.assert_close(step.logits, logits, atol=1e-4, rtol=1e-4)
            token = step.token_id
            assert token == choose_token(step.logits, sampling, position=len(sequence))
            probabilities = step.logits.double().softmax(0)
            assert step.probability == pytest.approx(float(probabilities[token]))
            assert step.rank == 1 + int(
                (step.logits > step.logits[token]).sum() + (step.logits[:token] == step.logits[token]).sum()
            )
            assert step.entropy == pytest.approx(float(torch.special.entr(probabilities).sum()), abs=1e-6)
            json.dumps([step.position, token, step.probability, step.rank, step.entropy])
            sequence.append(token)

    def test_it_is_used(self):
        """Each step computes the newest token alone, but the first, and where the window has moved; of a source the
        first step alone has what was recorded."""
        steps = generate(tiny_model(), PROMPT, max_new_tokens=11, names_filter="hook_embed")
        assert [step.cache["embed"].shape[1] for step in steps] == [3, 1, 1, 1, 1, 1, 7, 1, 7, 1, 7]
        model, read = tiny_encoder_decoder(), []
        model.encoder.ln_final.register_forward_hook(lambda *call: read.append("source"))
        model.decoder.blocks[0].cross_attn.kv.register_forward_hook(lambda *call: read.append("memory"))
        steps = list(generate(model, [1, 2], max_new_tokens=5, source=SOURCE, names_filter=None))
        assert read == ["source", "memory"]
        assert [step.cache["decoder.hook_embed"].shape[1] for step in steps] == [2, 1, 1, 1, 1]
        assert [any(name.startswith("encoder.") for name in step.cache) for step in steps] == [True, *[False] * 4]
        assert all("decoder.blocks.1.cross_attn.hook_pattern" in step.cache for step in steps)


class TestSteps:
    @pytest.mark.parametrize("model", [tiny_model(), tiny_encoder_decoder()])
    def test_it_ends_after_as_many_as_asked_or_a_stop_token_which_is_still_reported(self, model):
        has_source = model.config.architecture == "encoder-decoder"
        options = {"sampling": Sampling(seed=3), "source": SOURCE if has_source else None}
        tokens = write(model, n=20, **options)
        assert len(tokens) == 20 and write(model, n=0, **options) == []
        stop = tokens[4]
        assert write(model, n=20, stop_tokens=(stop,), **options) == tokens[: tokens.index(stop) + 1]
        asked = {**options, "source": torch.tensor([SOURCE]) if has_source else None}
        assert write(model, torch.tensor([PROMPT]), n=20, **asked) == tokens

    def test_hooks_see_source_and_text_whole_and_rest_while_the_caller_holds_the_iterator(self):
        """And nothing is computed that is not asked for."""
        model, shapes = tiny_encoder_decoder(unembed_bias=True), []

        def silence(z, hook):
            shapes.append((hook.name.split(".")[0], z.shape[1]))
            return z * 0

        hooks = [("encoder.blocks.0.attn.hook_z", silence), ("decoder.blocks.0.cross_attn.hook_z", silence)]
        source, sequence = torch.tensor([SOURCE]), [1]
        steps = generate(model, sequence, max_new_tokens=9, fwd_hooks=hooks, source=SOURCE, names_filter=None)
        for pos in (1, 2, 3):
            step = next(steps)
            assert torch.is_grad_enabled() and not step.logits.requires_grad
            assert shapes == [("encoder", len(SOURCE)), ("decoder", pos)]
            recorded = {name: tensor.clone() for name, tensor in step.cache.items()}
            inputs = source, torch.tensor([sequence])
            close(model(*inputs), model.run_with_cache(*inputs)[0])
            assert len(shapes) == 2
            torch.testing.assert_close(step.logits, model.run_with_hooks(*inputs, fwd_hooks=hooks)[0, -1])
            assert all(torch.equal(step.cache[name], tensor) for name, tensor in recorded.items())
            sequence.append(step.token_id)
            shapes.clear()


TWO_TEXTS = torch.zeros(2, 3, dtype=torch.long)


@pytest.mark.parametrize(
    ("make", "prompt", "source", "message"),
    [
        *(
            (make, prompt, source, message)
            for make, source in ((tiny_model, None), (tiny_encoder_decoder, SOURCE))
            for prompt, message in (
                ([], "at least one token"),
                ([1, 11], "Token id 11 is not in this model's vocabulary of 11"),
                ([-1], "Token id -1"),
                (TWO_TEXTS, r"one text at a time.*\(2, 3\)"),
            )
        ),
        (tiny_encoder_decoder, [1], None, r"^An encoder–decoder needs a source of at least one token\.$"),
        (tiny_encoder_decoder, [1], [], r"needs a source of at least one token"),
        (tiny_encoder_decoder, [1], [1] * 9, r"^The source has 9 tokens; this model reads at most 8\.$"),
        (tiny_encoder_decoder, [1], [1, 11], r"^Token id 11 is not in this model's vocabulary of 11\.$"),
        (tiny_encoder_decoder, [1], TWO_TEXTS, r"one text at a time.*\(2, 3\)"),
        (tiny_model, [1], SOURCE, r"reads no source; put all of it into the prompt\."),
        (lambda: tiny_model(architecture="encoder-only"), [1], None, "writes nothing on; it fills gaps: fill_masks"),
    ],
)
def test_what_it_can_not_read_is_refused_at_once(make, prompt, source, message):
    with pytest.raises(ValueError, match=message):
        generate(make(), prompt, max_new_tokens=1, source=source)


class TestSampling:
    @given(
        hnp.arrays(np.float64, st.integers(1, 12), elements=st.integers(-600, 600).map(lambda x: x / 100), unique=True),
        st.sampled_from([0.3, 0.8, 1.0, 1.7]),
        st.none() | st.integers(1, 14),
        st.none() | st.sampled_from([0.05, 0.31, 0.5, 0.77, 0.9, 0.99, 1.0]),
    )
    def test_the_distribution_is_that_of_hugging_face(self, logits, temperature, top_k, top_p):
        transformers = pytest.importorskip("transformers")
        warpers = [transformers.TemperatureLogitsWarper(temperature)]
        warpers += [transformers.TopKLogitsWarper(top_k)] if top_k else []
        warpers += [transformers.TopPLogitsWarper(top_p)] if top_p else []
        scores = torch.from_numpy(logits)[None]
        for warp in warpers:
            scores = warp(None, scores)
        found = sampling_distribution(torch.from_numpy(logits), Sampling(temperature, top_k, top_p))
        torch.testing.assert_close(found, scores[0].softmax(0), atol=1e-12, rtol=0)

    def test_greedy_takes_the_first_of_the_likeliest_and_logits_far_apart_do_not_overflow(self):
        logits = torch.tensor([1.0, 5.0, 5.0])
        assert sampling_distribution(logits, GREEDY).tolist() == [0, 1, 0]
        assert {choose_token(logits, GREEDY, position) for position in range(20)} == {1}
        for temperature, expected in ((1e-300, 1), (1e-3, 1), (1.0, 1), (1e300, 0.5)):
            far = sampling_distribution(torch.tensor([1e4, -1e4, -math.inf]), Sampling(temperature))
            assert far.tolist() == pytest.approx([expected, 1 - expected, 0])

    @pytest.mark.parametrize(("point", "token"), [(0.0, 1), (0.5, 4), (1 - 2**-53, 4)])
    def test_not_even_by_the_rarest_of_random_numbers(self, monkeypatch, point, token):
        """A point on a border belongs to the share that begins there, and there are none of size zero."""
        logits = torch.tensor([-math.inf, 0.0, -math.inf, -math.inf, 0.0, -math.inf])
        monkeypatch.setattr(np.random, "default_rng", lambda seed: SimpleNamespace(random=lambda: point))
        assert choose_token(logits, Sampling(seed=0), position=0) == token

    @pytest.mark.parametrize(
        ("field", "values"),
        [
            ("temperature", (-0.1, math.inf, math.nan)),
            ("top_k", (0, -3)),
            ("top_p", (0.0, 1.01, math.nan)),
            ("seed", (-1,)),
        ],
    )
    def test_what_is_out_of_range_is_refused(self, field, values):
        for value in values:
            with pytest.raises(ValueError, match=f"^{field} is {value}; it must be"):
                Sampling(**{field: value})

    def test_a_seed_alone_decides_the_text_and_without_one_every_text_is_another(self):
        """The global generators are neither read nor moved."""
        model, texts = tiny_model(), {}
        torch.manual_seed(0)
        np.random.seed(0)
        before = torch.get_rng_state(), np.random.get_state()[1].copy()
        for seed in (1, 1, 2, None, None):
            texts.setdefault(seed, []).append(write(model, n=30, sampling=Sampling(seed=seed)))
        assert texts[1][0] == texts[1][1] != texts[2][0] and texts[None][0] != texts[None][1]
        assert torch.equal(torch.get_rng_state(), before[0])
        assert (np.random.get_state()[1] == before[1]).all()

    def test_random_numbers_drawn_ahead_are_those_of_their_positions(self):
        sampling = Sampling(seed=9)
        ahead = list(itertools.islice(random_points(sampling, 7), 40))
        assert ahead == [next(random_points(sampling, position, ahead=1)) for position in range(7, 47)]
        assert all(0 <= point < 1 for point in ahead) and len(set(ahead)) == 40


class TestManyTextsAtOnce:
    @settings(max_examples=12)
    @given(any_configs(), st.integers(1, 3), st.integers(0, 4))
    def test_greedily_is_what_each_text_alone_gives_at_temperature_0_up_to_the_context(self, config, length, n):
        model, (*source, tokens) = tiny_model(config), some_inputs(config)
        tokens, read = tokens[:, -length:], source[0] if source else None
        together = write_greedily(model, tokens, n, source=read)
        assert together.shape == (len(tokens), n)
        assert not together.requires_grad and together.dtype == torch.int64
        for row, text in enumerate(tokens):
            assert together[row].tolist() == write(
                model, text, n, source=source[0][row] if source else None, sampling=GREEDY
            )
        room = config.context_length + 1 - length  # the last token that is written need not be read again
        assert write_greedily(model, tokens, room, source=read).shape == (2, room)
        with pytest.raises(ValueError, match="more than this model's context"):
            write_greedily(model, tokens, room + 1, source=read)

    def test_it_ends_once_each_text_has_written_the_end_and_says_the_same_until_then(self):
        model, tokens = tiny_model(), torch.tensor([[1], [2], [3]])
        written = write_greedily(model, tokens, 6)
        for end in written.unique().tolist():
            firsts = [row.index(end) if end in row else 5 for row in written.tolist()]
            assert torch.equal(write_greedily(model, tokens, 6, end_token=end), written[:, : max(firsts) + 1])
