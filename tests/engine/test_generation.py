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

from tests.helpers import any_configs, some_inputs, tiny_encoder_decoder, tiny_model
from transformer import KeyValueCache, Sampling, choose_token, generate, sampling_distribution, token_statistics
from transformer.inference import generation
from transformer.inference.context_windows import window_start
from transformer.inference.generation import write_greedily
from transformer.inference.sampling import random_points

PROMPT, START, SOURCE = [1, 2, 3], [1], [3, 5, 7, 2]
GREEDY = Sampling(temperature=0)


def write(model, prompt=PROMPT, n: int = 6, **options) -> list[int]:
    return [step.token_id for step in generate(model, prompt, max_new_tokens=n, **options)]


class TestTheCache:
    @settings(max_examples=20)
    @given(
        any_configs() | any_configs(context_length=9),
        st.lists(st.integers(0, 10), min_size=1, max_size=6),
        st.lists(st.integers(0, 10), min_size=1, max_size=12),
    )
    def test_every_step_is_what_a_pass_over_its_window_gives(self, config, source, sequence):
        """Also past the context length, where the window moves, and where source or text holds the token that pads."""
        model, sampling, n = tiny_model(config), Sampling(seed=5), config.context_length + 3
        source = source if config.architecture == "encoder-decoder" else None
        steps = list(generate(model, sequence, max_new_tokens=n, sampling=sampling, source=source))
        assert len(steps) == n
        for step in steps:
            assert step.position == len(sequence)
            window = sequence[window_start(len(sequence), config.context_length) :]
            with torch.no_grad():
                logits = model(*(torch.tensor([each]) for each in (source, window) if each))[0, -1]
            torch.testing.assert_close(step.logits, logits, atol=1e-4, rtol=1e-4)
            assert step.token_id == choose_token(step.logits, sampling, position=len(sequence))
            sequence.append(step.token_id)

    @given(any_configs(), st.integers(1, 3), st.integers(1, 3))
    def test_a_pass_in_pieces_gives_the_logits_of_one_pass(self, config, first, second):
        """Padding and all: what pads is known by the tokens so far, not by the newest ones alone."""
        model = tiny_model(config)
        *source, tokens = some_inputs(config)
        whole = model(*source, tokens)
        past, pieces = KeyValueCache.for_model(config), []
        for piece in (tokens[:, :first], tokens[:, first : first + second], tokens[:, first + second :]):
            if piece.shape[1]:
                pieces.append(model(*source, piece, past=past))
        assert past.length == tokens.shape[1]
        torch.testing.assert_close(torch.cat(pieces, 1), whole, atol=1e-4, rtol=1e-4)

    def test_it_is_used(self):
        """Each step after the first computes the newest token alone, but where the window has moved."""
        steps = generate(tiny_model(), PROMPT, max_new_tokens=11, names_filter="hook_embed")
        assert [step.cache["embed"].shape[1] for step in steps] == [3, 1, 1, 1, 1, 1, 7, 1, 7, 1, 7]
        model, read = tiny_encoder_decoder(), []
        model.encoder.ln_final.register_forward_hook(lambda *call: read.append("source"))
        model.decoder.blocks[0].cross_attn.kv.register_forward_hook(lambda *call: read.append("memory"))
        steps = list(generate(model, [1, 2], max_new_tokens=5, source=SOURCE, names_filter=None))
        assert read == ["source", "memory"]
        assert [step.cache["decoder.hook_embed"].shape[1] for step in steps] == [2, 1, 1, 1, 1]

    def test_the_encoders_points_are_recorded_in_the_first_step_alone(self):
        model = tiny_encoder_decoder()
        for number, step in enumerate(generate(model, START, max_new_tokens=4, source=SOURCE, names_filter=None)):
            of_the_encoder = [name for name in step.cache if name.startswith("encoder.")]
            expected = [name for name in model.hook_names() if name.startswith("encoder.")]
            expected = [name for name in expected if not name.endswith("hook_result")]
            assert of_the_encoder == (expected if number == 0 else [])
            assert "decoder.blocks.1.cross_attn.hook_pattern" in step.cache


class TestWhatIsReported:
    @pytest.mark.parametrize("sampling", [Sampling(0.3, top_k=2, top_p=0.5, seed=1), GREEDY])
    def test_probability_rank_and_entropy_are_the_models_own(self, sampling):
        """Temperature 1 and nothing cut off, whatever the sampling does."""
        for step in generate(tiny_model(), PROMPT, max_new_tokens=5, sampling=sampling):
            assert torch.is_grad_enabled()  # as the caller has it
            logits = step.logits.double().numpy()
            probabilities = np.exp(logits - logits.max())
            probabilities /= probabilities.sum()
            assert step.probability == pytest.approx(probabilities[step.token_id])
            assert step.rank == 1 + (probabilities > probabilities[step.token_id]).sum()
            assert step.entropy == pytest.approx(-(probabilities * np.log(probabilities)).sum())
            assert step.logits.shape == (11,) and not step.logits.requires_grad
            for value in (step.position, step.token_id, step.probability, step.rank, step.entropy):
                assert json.loads(json.dumps(value)) == value
            assert step.rank == 1 or sampling is not GREEDY

    def test_statistics_are_computed_once_and_only_when_asked_for(self, monkeypatch):
        asked = []
        monkeypatch.setattr(generation, "token_statistics", lambda *args: asked.append(args) or token_statistics(*args))
        steps = list(generate(tiny_model(), PROMPT, max_new_tokens=3, sampling=GREEDY))
        assert asked == []
        assert (steps[1].probability, steps[1].rank, steps[1].entropy) == token_statistics(
            steps[1].logits, steps[1].token_id
        )
        assert len(asked) == 1

    def test_what_is_recorded_is_what_was_asked_for_and_a_predicate_is_asked_once_a_text(self):
        model, asked, names = tiny_model(), [], ("blocks.0.attn.hook_z", "blocks.1.attn.hook_z")
        steps = generate(
            model, PROMPT, max_new_tokens=5, names_filter=lambda name: asked.append(name) or name.endswith("hook_z")
        )
        assert {tuple(step.cache) for step in steps} == {names}
        assert sorted(asked) == sorted(model.hook_names())
        assert all(len(step.cache) == 0 for step in generate(model, PROMPT, max_new_tokens=2))
        with pytest.raises(ValueError, match="no hook point"):
            next(generate(model, PROMPT, max_new_tokens=2, names_filter="hook_nothing"))


class TestStopping:
    @pytest.mark.parametrize("source", [None, SOURCE])
    def test_it_ends_after_as_many_as_asked_or_a_stop_token_which_is_still_reported(self, source):
        model = tiny_model() if source is None else tiny_encoder_decoder()
        options = {"sampling": Sampling(seed=3), "source": source}
        tokens = write(model, n=20, **options)
        assert len(tokens) == 20 and write(model, n=0, **options) == []
        stop = tokens[4]
        assert write(model, n=20, stop_tokens=(stop,), **options) == tokens[: tokens.index(stop) + 1]

    def test_it_computes_nothing_that_is_not_asked_for(self):
        model, calls = tiny_model(), []
        model.hook_embed.register_forward_hook(lambda *call: calls.append(1))
        steps = generate(model, PROMPT, max_new_tokens=50)
        assert calls == []
        list(itertools.islice(steps, 2))
        assert len(calls) == 2


class TestInterventions:
    def test_with_interventions_each_step_sees_source_and_text_whole(self):
        model, shapes = tiny_encoder_decoder(unembed_bias=True), []

        def silence(z, hook):
            shapes.append((hook.name.split(".")[0], z.shape[1]))
            return z * 0

        hooks = [("encoder.blocks.0.attn.hook_z", silence), ("decoder.blocks.0.cross_attn.hook_z", silence)]
        steps = list(generate(model, START, max_new_tokens=3, sampling=GREEDY, fwd_hooks=hooks, source=SOURCE))
        assert shapes == [seen for pos in (1, 2, 3) for seen in (("encoder", len(SOURCE)), ("decoder", pos))]
        sequence = list(START)
        for step in steps:
            inputs = torch.tensor([SOURCE]), torch.tensor([sequence])
            torch.testing.assert_close(step.logits, model.run_with_hooks(*inputs, fwd_hooks=hooks)[0, -1])
            sequence.append(step.token_id)

    def test_recording_and_intervening_rest_while_the_caller_holds_the_iterator(self):
        model, seen = tiny_model(), []
        other = torch.tensor([[4, 5, 6]])
        plain = model(other)
        hooks = [("hook_embed", lambda tensor, hook: seen.append(1) or tensor * 0)]
        steps = generate(model, PROMPT, max_new_tokens=3, fwd_hooks=hooks, names_filter=None)
        for number, step in enumerate(steps, start=1):
            recorded = {name: tensor.clone() for name, tensor in step.cache.items()}
            assert torch.equal(model(other), plain)
            model.run_with_cache(other)
            assert len(seen) == number
            assert all(torch.equal(step.cache[name], tensor) for name, tensor in recorded.items())


class TestBadInput:
    @pytest.mark.parametrize("make", [tiny_model, tiny_encoder_decoder])
    @pytest.mark.parametrize(
        ("prompt", "message"),
        [
            ([], "at least one token"),
            ([1, 11], "Token id 11 is not in this model's vocabulary of 11"),
            ([-1], "Token id -1"),
            (torch.zeros(2, 3, dtype=torch.long), r"one text at a time.*\(2, 3\)"),
        ],
    )
    def test_a_prompt_it_can_not_go_on_from_is_refused_at_once(self, make, prompt, message):
        with pytest.raises(ValueError, match=message):
            generate(make(), prompt, max_new_tokens=1, source=SOURCE if make is tiny_encoder_decoder else None)

    @pytest.mark.parametrize(
        ("source", "message"),
        [
            (None, r"^An encoder–decoder needs a source of at least one token\.$"),
            ([], r"needs a source of at least one token"),
            ([1] * 9, r"^The source has 9 tokens; this model reads at most 8\.$"),
            ([1, 11], r"^Token id 11 is not in this model's vocabulary of 11\.$"),
            ([-1], r"Token id -1 is not in"),
            (torch.zeros(2, 3, dtype=torch.long), r"one text at a time.*\(2, 3\)"),
        ],
    )
    def test_a_source_it_can_not_read_is_refused_at_once(self, source, message):
        with pytest.raises(ValueError, match=message):
            generate(tiny_encoder_decoder(), START, max_new_tokens=1, source=source)

    def test_a_model_without_an_encoder_refuses_a_source(self):
        with pytest.raises(ValueError, match=r"reads no source; put all of it into the prompt\."):
            generate(tiny_model(), START, max_new_tokens=1, source=SOURCE)

    def test_prompt_and_source_may_be_tensors(self):
        model = tiny_encoder_decoder()
        expected = write(model, source=SOURCE, sampling=GREEDY)
        for prompt, source in ((PROMPT, SOURCE), ([PROMPT], [SOURCE])):
            assert write(model, torch.tensor(prompt), source=torch.tensor(source), sampling=GREEDY) == expected

    @pytest.mark.parametrize(
        ("field", "values"),
        [
            ("temperature", (-0.1, math.inf, math.nan)),
            ("top_k", (0, -3)),
            ("top_p", (0.0, 1.01, math.nan)),
            ("seed", (-1,)),
        ],
    )
    def test_sampling_out_of_range_is_refused(self, field, values):
        for value in values:
            with pytest.raises(ValueError, match=f"^{field} is {value}; it must be"):
                Sampling(**{field: value})


def as_hugging_face_does(logits: np.ndarray, temperature: float, top_k: int | None, top_p: float | None) -> np.ndarray:
    """TemperatureLogitsWarper, TopKLogitsWarper and TopPLogitsWarper of Hugging Face transformers, in their order."""
    scores = logits.astype(np.float64) / temperature
    if top_k is not None:
        smallest_kept = np.sort(scores)[-min(top_k, len(scores))]
        scores = np.where(scores < smallest_kept, -np.inf, scores)
    if top_p is not None and top_p < 1:
        order = np.argsort(scores, kind="stable")
        probabilities = np.exp(scores[order] - scores.max())
        cumulative = np.cumsum(probabilities / probabilities.sum())
        remove = cumulative <= 1 - top_p
        remove[-1] = False
        scores[order[remove]] = -np.inf
    probabilities = np.exp(scores - scores.max())
    return probabilities / probabilities.sum()


class TestSampling:
    @given(
        hnp.arrays(np.float64, st.integers(1, 12), elements=st.integers(-600, 600).map(lambda x: x / 100), unique=True),
        st.sampled_from([0.3, 0.8, 1.0, 1.7]),
        st.none() | st.integers(1, 14),
        st.none() | st.sampled_from([0.05, 0.31, 0.5, 0.77, 0.9, 0.99, 1.0]),
    )
    def test_the_distribution_is_that_of_hugging_face(self, logits, temperature, top_k, top_p):
        sampling = Sampling(temperature, top_k, top_p)
        distribution = sampling_distribution(torch.from_numpy(logits), sampling).numpy()
        np.testing.assert_allclose(distribution, as_hugging_face_does(logits, temperature, top_k, top_p), atol=1e-12)

    def test_greedy_takes_the_first_of_the_likeliest(self):
        logits = torch.tensor([1.0, 5.0, 5.0])
        assert sampling_distribution(logits, GREEDY).tolist() == [0, 1, 0]
        assert {choose_token(logits, GREEDY, position) for position in range(20)} == {1}

    def test_logits_far_apart_do_not_overflow(self):
        logits = torch.tensor([1e4, -1e4, -math.inf])
        for temperature in (1e-300, 1e-3, 1.0, 1e300):
            distribution = sampling_distribution(logits, Sampling(temperature))
            assert distribution.sum() == pytest.approx(1)
            assert distribution[2] == 0

    def test_draws_follow_the_distribution(self):
        """Pearson's χ² over 3,000 draws, below what chance exceeds once in 10,000."""
        logits = torch.tensor([2.0, 1.0, 0.5, 0.0, -1.0, -3.0])
        sampling = Sampling(0.8, top_k=5, seed=11)
        distribution = sampling_distribution(logits, sampling).numpy()
        draws = [choose_token(logits, sampling, position) for position in range(3000)]
        counts = np.bincount(draws, minlength=6)
        assert counts[5] == 0
        expected = distribution[:5] * 3000
        assert ((counts[:5] - expected) ** 2 / expected).sum() < 23.5  # four degrees of freedom

    @pytest.mark.parametrize(("point", "token"), [(0.0, 1), (0.5, 4), (1 - 2**-53, 4)])
    def test_not_even_by_the_rarest_of_random_numbers(self, monkeypatch, point, token):
        """A point on a border belongs to the share that begins there, and there are none of size zero."""
        logits = torch.tensor([-math.inf, 0.0, -math.inf, -math.inf, 0.0, -math.inf])
        monkeypatch.setattr(np.random, "default_rng", lambda seed: SimpleNamespace(random=lambda: point))
        assert choose_token(logits, Sampling(seed=0), position=0) == token


class TestSeeds:
    def test_a_seed_decides_the_text(self):
        texts = [write(tiny_model(), n=12, sampling=Sampling(seed=seed)) for seed in (1, 1, 2)]
        assert texts[0] == texts[1] != texts[2]

    def test_without_a_seed_every_text_is_another(self):
        model = tiny_model()
        torch.manual_seed(0)
        first = write(model, n=30)
        torch.manual_seed(0)
        assert write(model, n=30) != first

    def test_the_global_generators_are_neither_read_nor_moved(self):
        model = tiny_model()
        expected = write(model, sampling=Sampling(seed=1))
        torch.manual_seed(123)
        np.random.seed(123)
        before = torch.get_rng_state(), np.random.get_state()[1].copy()
        assert write(model, sampling=Sampling(seed=1)) == expected
        assert torch.equal(torch.get_rng_state(), before[0])
        assert (np.random.get_state()[1] == before[1]).all()

    def test_random_numbers_drawn_ahead_are_those_of_their_positions(self):
        sampling = Sampling(seed=9)
        ahead = list(itertools.islice(random_points(sampling, 7), 40))
        assert ahead == [next(random_points(sampling, position, ahead=1)) for position in range(7, 47)]
        assert all(0 <= point < 1 for point in ahead)
        assert len(set(ahead)) == 40


class TestManyTextsAtOnce:
    @settings(max_examples=12)
    @given(any_configs(), st.integers(1, 3), st.integers(0, 4))
    def test_greedily_is_what_each_text_alone_gives_at_temperature_0(self, config, length, n):
        model = tiny_model(config)
        *source, tokens = some_inputs(config)
        tokens = tokens[:, -length:]
        together = write_greedily(model, tokens, n, source=source[0] if source else None)
        assert together.shape == (len(tokens), n)
        assert not together.requires_grad and together.dtype == torch.int64
        for row in range(len(tokens)):
            read = source[0][row] if source else None
            assert together[row].tolist() == write(model, tokens[row], n, source=read, sampling=GREEDY)

    @given(any_configs())
    def test_it_writes_up_to_the_context_and_no_further(self, config):
        """The last token that is written need not be read again."""
        model = tiny_model(config)
        *source, tokens = some_inputs(config)
        room = config.context_length + 1 - tokens.shape[1]
        read = source[0] if source else None
        assert write_greedily(model, tokens, room, source=read).shape == (2, room)
        with pytest.raises(ValueError, match="more than this model's context"):
            write_greedily(model, tokens, room + 1, source=read)

    def test_it_ends_once_each_text_has_written_the_end_and_says_the_same_until_then(self):
        model = tiny_model()
        tokens = torch.tensor([[1], [2], [3]])
        written = write_greedily(model, tokens, 6)
        for end in written.unique().tolist():
            firsts = [row.index(end) if end in row else 5 for row in written.tolist()]
            assert torch.equal(write_greedily(model, tokens, 6, end_token=end), written[:, : max(firsts) + 1])
