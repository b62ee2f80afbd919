"""Tests generation: caches, sampling, and reported probabilities."""

import itertools
import json
import math
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.helpers import configs, tiny_model
from transformer import Sampling, choose_token, generate, sampling_distribution, token_statistics
from transformer.inference import generation
from transformer.inference.sampling import random_points
from transformer.inference.windows import window_start

PROMPT = [1, 2, 3]
GREEDY = Sampling(temperature=0)


def write(model, prompt=PROMPT, n: int = 6, **options) -> list[int]:
    return [step.token_id for step in generate(model, prompt, max_new_tokens=n, **options)]


class TestTheCache:
    @settings(max_examples=25)
    @given(configs(pad_token_id=None) | configs(pad_token_id=None, context_length=9), st.integers(1, 12))
    def test_every_step_is_what_a_pass_over_its_window_gives(self, config, prompt_length):
        """Also past the context length, where the window moves, and from a prompt that is longer than it."""
        model = tiny_model(config)
        sequence = [(3 * i + 1) % config.vocab_size for i in range(prompt_length)]
        sampling = Sampling(seed=5)
        steps = list(generate(model, sequence, max_new_tokens=config.context_length + 3, sampling=sampling))
        assert len(steps) == config.context_length + 3
        for step in steps:
            assert step.position == len(sequence)
            with torch.no_grad():
                logits = model(torch.tensor([sequence[window_start(len(sequence), config.context_length) :]]))[0, -1]
            torch.testing.assert_close(step.logits, logits, atol=1e-4, rtol=1e-4)
            assert step.token_id == choose_token(step.logits, sampling, position=len(sequence))
            sequence.append(step.token_id)

    def test_it_is_used(self):
        """Each step after the first computes the newest token alone, but where the window has moved."""
        model = tiny_model()
        steps = generate(model, PROMPT, max_new_tokens=11, names_filter="hook_embed")
        lengths = [step.cache["embed"].shape[1] for step in steps]
        assert lengths == [3, 1, 1, 1, 1, 1, 7, 1, 7, 1, 7]

    def test_two_texts_at_once_do_not_mix(self):
        model = tiny_model()
        expected = write(model, [1, 2], sampling=GREEDY), write(model, [7, 8, 9], sampling=GREEDY)
        first = generate(model, [1, 2], max_new_tokens=6, sampling=GREEDY, names_filter=None)
        second = generate(model, [7, 8, 9], max_new_tokens=6, sampling=GREEDY, names_filter=None)
        taken = [(a.token_id, b.token_id) for a, b in zip(first, second, strict=True)]
        assert tuple(map(list, zip(*taken, strict=True))) == expected


class TestWhatIsReported:
    def test_probability_rank_and_entropy_are_the_models_own(self):
        """Temperature 1 and nothing cut off, whatever the sampling does."""
        model = tiny_model()
        for step in generate(model, PROMPT, max_new_tokens=5, sampling=Sampling(0.3, top_k=2, top_p=0.5, seed=1)):
            logits = step.logits.double().numpy()
            probabilities = np.exp(logits - logits.max())
            probabilities /= probabilities.sum()
            assert step.probability == pytest.approx(probabilities[step.token_id])
            assert step.rank == 1 + (probabilities > probabilities[step.token_id]).sum()
            assert step.entropy == pytest.approx(-(probabilities * np.log(probabilities)).sum())
            assert step.logits.shape == (11,)
            assert not step.logits.requires_grad

    def test_statistics_are_computed_once_and_only_when_asked_for(self, monkeypatch):
        asked = []
        monkeypatch.setattr(generation, "token_statistics", lambda *args: asked.append(args) or token_statistics(*args))
        steps = list(generate(tiny_model(), PROMPT, max_new_tokens=3, sampling=GREEDY))
        assert asked == []
        assert (steps[1].probability, steps[1].rank, steps[1].entropy) == token_statistics(
            steps[1].logits, steps[1].token_id
        )
        assert len(asked) == 1

    def test_what_a_step_tells_can_be_written_as_json(self):
        step = next(generate(tiny_model(), PROMPT, max_new_tokens=1, sampling=Sampling(0.9, top_k=5, top_p=0.9)))
        for value in (step.position, step.token_id, step.probability, step.rank, step.entropy):
            assert json.loads(json.dumps(value)) == value

    def test_a_predicate_on_names_is_asked_once_a_text(self):
        model, asked = tiny_model(), []
        steps = generate(
            model, PROMPT, max_new_tokens=5, names_filter=lambda name: asked.append(name) or name.endswith("hook_z")
        )
        assert {tuple(step.cache) for step in steps} == {("blocks.0.attn.hook_z", "blocks.1.attn.hook_z")}
        assert sorted(asked) == sorted(model.hook_names())

    def test_the_pattern_alone_is_the_one_recorded_with_all_else(self):
        """Of the newest token alone, too, whose pattern is computed without a mask while nobody looks at the scores."""
        model = tiny_model()
        alone = generate(model, PROMPT, max_new_tokens=5, sampling=GREEDY, names_filter="blocks.1.attn.hook_pattern")
        among = generate(model, PROMPT, max_new_tokens=5, sampling=GREEDY, names_filter=None)
        for one, all_of_it in zip(alone, among, strict=True):
            torch.testing.assert_close(one.cache["pattern", 1], all_of_it.cache["pattern", 1], atol=1e-6, rtol=0)
            torch.testing.assert_close(one.logits, all_of_it.logits, atol=1e-5, rtol=0)

    def test_the_likeliest_has_rank_1(self):
        assert all(step.rank == 1 for step in generate(tiny_model(), PROMPT, max_new_tokens=9, sampling=GREEDY))

    def test_what_is_recorded_is_what_was_asked_for(self):
        model = tiny_model()
        for step in generate(model, PROMPT, max_new_tokens=2, names_filter="blocks.1.attn.hook_pattern"):
            assert list(step.cache) == ["blocks.1.attn.hook_pattern"]
        assert all(len(step.cache) == 0 for step in generate(model, PROMPT, max_new_tokens=2))
        with pytest.raises(ValueError, match="no hook point"):
            next(generate(model, PROMPT, max_new_tokens=2, names_filter="hook_nothing"))


class TestStopping:
    def test_it_writes_as_many_as_asked(self):
        assert len(write(tiny_model(), n=4)) == 4
        assert write(tiny_model(), n=0) == []

    def test_it_ends_after_a_stop_token_which_is_still_reported(self):
        model = tiny_model()
        tokens = write(model, n=20, sampling=Sampling(seed=3))
        stop = tokens[4]
        first = tokens.index(stop)
        assert write(model, n=20, sampling=Sampling(seed=3), stop_tokens=(stop,)) == tokens[: first + 1]

    def test_it_computes_nothing_that_is_not_asked_for(self):
        model, calls = tiny_model(), []
        model.hook_embed.register_forward_hook(lambda *call: calls.append(1))
        steps = generate(model, PROMPT, max_new_tokens=50)
        assert calls == []
        list(itertools.islice(steps, 2))
        assert len(calls) == 2


class TestInterventions:
    def test_they_change_what_is_written_at_every_step(self):
        model = tiny_model(unembed_bias=True)
        calls = []

        def silence(out, hook):
            calls.append(tuple(out.shape))
            return out * 0

        hooks = [("blocks.0.attn.hook_z", silence)]
        steps = list(generate(model, PROMPT, max_new_tokens=3, sampling=GREEDY, fwd_hooks=hooks))
        assert calls == [(1, 3, 2, 4), (1, 4, 2, 4), (1, 5, 2, 4)]  # the whole window, each time
        sequence = list(PROMPT)
        for step in steps:
            logits = model.run_with_hooks(torch.tensor([sequence]), fwd_hooks=hooks)[0, -1]
            torch.testing.assert_close(step.logits, logits)
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

    def test_a_gradient_setting_of_the_caller_is_left_alone(self):
        for _ in generate(tiny_model(), PROMPT, max_new_tokens=2):
            assert torch.is_grad_enabled()


class TestBadInput:
    @pytest.mark.parametrize(
        ("prompt", "message"),
        [
            ([], "at least one token"),
            ([1, 11], "Token id 11 is not in this model's vocabulary of 11"),
            ([-1], "Token id -1"),
            (torch.zeros(2, 3, dtype=torch.long), r"one text at a time.*\(2, 3\)"),
        ],
    )
    def test_a_prompt_it_can_not_go_on_from_is_refused_at_once(self, prompt, message):
        with pytest.raises(ValueError, match=message):
            generate(tiny_model(), prompt, max_new_tokens=1)

    def test_a_prompt_may_be_a_tensor(self):
        model = tiny_model()
        expected = write(model, sampling=GREEDY)
        assert write(model, torch.tensor(PROMPT), sampling=GREEDY) == expected
        assert write(model, torch.tensor([PROMPT]), sampling=GREEDY) == expected

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("temperature", -0.1),
            ("temperature", math.inf),
            ("temperature", math.nan),
            ("top_k", 0),
            ("top_k", -3),
            ("top_p", 0.0),
            ("top_p", 1.01),
            ("top_p", math.nan),
            ("seed", -1),
        ],
    )
    def test_sampling_out_of_range_is_refused(self, field, value):
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

    def test_top_p_is_of_what_top_k_left(self):
        logits = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()
        # Of the two that top-k leaves, the first has 4/7 = 0.571 of the probability: enough for 0.57.
        assert sampling_distribution(logits, Sampling(top_k=2, top_p=0.57)).tolist() == [1, 0, 0, 0]
        # Had top-p come first, 0.4 would not have been enough, and two would be left.
        assert (sampling_distribution(logits, Sampling(top_p=0.57)) > 0).sum() == 2

    def test_temperature_comes_before_top_p(self):
        logits = torch.tensor([0.6, 0.4]).log()
        assert (sampling_distribution(logits, Sampling(1.0, top_p=0.65)) > 0).sum() == 2
        assert (sampling_distribution(logits, Sampling(0.5, top_p=0.65)) > 0).sum() == 1  # 0.36 / 0.52 = 0.69

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

    def test_what_is_cut_off_is_never_drawn(self):
        logits = torch.zeros(8)
        logits[[0, 7]] = -50.0
        for seed in range(300):
            assert 0 < choose_token(logits, Sampling(top_k=6, seed=seed), position=seed) < 7

    @pytest.mark.parametrize(("point", "token"), [(0.0, 1), (0.5, 4), (1 - 2**-53, 4)])
    def test_not_even_by_the_rarest_of_random_numbers(self, monkeypatch, point, token):
        """A point on a border belongs to the share that begins there, and there are none of size zero."""
        logits = torch.tensor([-math.inf, 0.0, -math.inf, -math.inf, 0.0, -math.inf])
        monkeypatch.setattr(np.random, "default_rng", lambda seed: SimpleNamespace(random=lambda: point))
        assert choose_token(logits, Sampling(seed=0), position=0) == token


class TestSeeds:
    def test_a_seed_decides_the_text(self):
        model = tiny_model()
        texts = [write(model, n=12, sampling=Sampling(seed=seed)) for seed in (1, 1, 2)]
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

    def test_writing_one_token_at_a_time_writes_the_same_text(self):
        model = tiny_model()
        sampling = Sampling(0.9, top_k=8, seed=4)
        sequence = list(PROMPT)
        for _ in range(12):
            sequence += write(model, sequence, n=1, sampling=sampling)
        assert sequence == PROMPT + write(model, n=12, sampling=sampling)

    def test_random_numbers_drawn_ahead_are_those_of_their_positions(self):
        sampling = Sampling(seed=9)
        ahead = list(itertools.islice(random_points(sampling, 7), 40))
        assert ahead == [next(random_points(sampling, position, ahead=1)) for position in range(7, 47)]
        assert all(0 <= point < 1 for point in ahead)
        assert len(set(ahead)) == 40

    def test_threads_that_write_at_once_write_what_each_would_alone(self):
        model = tiny_model()
        expected = [write(model, n=12, sampling=Sampling(seed=seed)) for seed in range(6)]
        written: dict[int, list[list[int]]] = {seed: [] for seed in range(6)}
        barrier = threading.Barrier(6)

        def work(seed: int) -> None:
            for _ in range(3):
                barrier.wait(timeout=60)
                written[seed].append(write(model, n=12, sampling=Sampling(seed=seed)))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert written == {seed: [expected[seed]] * 3 for seed in range(6)}
