"""Tests batched decoding: each text is the same as alone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import MODERN, any_configs, close, tiny_encoder_decoder, tiny_model
from transformer import Sampling, Scale, Steer, Without, generate, sampling_distribution
from transformer.inference.batched_decoding import PREFILL_TOKENS, BatchedDecoding
from transformer.inference.generation import DecodeState

GREEDY = Sampling(temperature=0)
WHAT = st.sampled_from(["join", "leave", "alone", "step", "step", "step"])


def is_close_call(logits, sampling, point):
    """Whether a token is decided by less than what rounding can change."""
    if sampling.temperature == 0:
        first, second = logits.topk(2).values.tolist()
        return first - second < 1e-5 * max(abs(first), 1)
    borders = sampling_distribution(logits, sampling).cumsum(0)
    return bool(((borders - point).abs() < 1e-5).any())


def check_steps(steps, alone, sampling):
    """All that came is what `generate` yields, up to where rounding makes it another text."""
    for step, expected in zip(steps, alone, strict=True):
        assert (step.position, step.point) == (expected.position, expected.point)
        assert step.window_start == expected.window_start
        close(step.logits, expected.logits)
        if step.token_id != expected.token_id:
            assert is_close_call(expected.logits, sampling, step.point)
            return
        assert list(step.cache) == list(expected.cache)
        for name, tensor in expected.cache.items():
            assert step.cache[name].shape == tensor.shape
            if tensor.is_floating_point():
                close(step.cache[name], tensor)


class Written:
    """A text, what is asked for it, and the steps that came."""

    def __init__(self, model, prompt, **asked):
        self.prompt, self.asked, self.steps = prompt, asked, []
        self.state = DecodeState(model, prompt, **asked)

    def check(self):
        alone = generate(self.state.model, self.prompt, max_new_tokens=len(self.steps), **self.asked)
        check_steps(self.steps, alone, self.asked["sampling"])


def step(decoding, texts):
    """One token each."""
    found = decoding.step([text.state for text in texts])
    for text in texts:
        assert not isinstance(found[text.state], Exception), found[text.state]
        text.steps.append(found[text.state])


def changes_of(model):
    """Of several texts: the same for some of them, which they can share a pass with, or can't."""
    points = [name for name in model.hook_names() if name.endswith("hook_z") and not name.startswith("encoder.")]
    if not points:
        return []
    head, source = Scale(points[-1], 0), (1, 2) if model.config.architecture == "encoder-decoder" else ()
    steered = Steer(points[0], tokens=(3,), against=(4,), source=source)
    return [(), (head,), (head, steered), (), (Scale(points[0], 0, 9),), (head,)]


def some_text(model, number, recorded=()):
    """A text of its own length, source, sampling, and recorded points."""
    config = model.config
    prompt = [(3 * i + number) % config.vocab_size for i in range(1 + 5 * number % 11)]
    source = [(2 * i + number) % config.vocab_size for i in range(1 + 3 * number % config.context_length)]
    sampling = GREEDY if number % 4 == 3 else Sampling(0.9, top_k=8, seed=number)
    asked = {"source": source} if config.architecture == "encoder-decoder" else {}
    if changes := changes_of(model):
        asked["interventions"] = changes[number % len(changes)]
    return Written(model, prompt, sampling=sampling, names_filter=recorded, **asked)


def live(model, acts, recorded=()):
    """Texts that join, leave, go on alone and come back, as the acts say."""
    decoding, texts = BatchedDecoding(model), [some_text(model, number, recorded) for number in range(3)]
    resting = set()
    for what, which in acts:
        text = texts[which % len(texts)]
        if what == "step":
            step(decoding, [text for text in texts if text not in resting])
        elif what == "join":
            texts.append(some_text(model, len(texts), recorded))
        elif what == "alone":
            decoding.release(text.state)
            text.steps.append(text.state.step())
        else:
            resting ^= {text}
    step(decoding, texts)
    for text in texts:
        text.check()


ACTS = st.lists(st.tuples(WHAT, st.integers(0, 9)), min_size=4, max_size=20)


class TestEachText:
    @settings(max_examples=10)
    @given(any_configs(context_length=8), ACTS, st.data())
    def test_is_what_is_written_alone_whoever_joins_and_leaves(self, config, acts, data):
        """Of every configuration, past the context too; tokens, logits, random numbers, and whatever is recorded."""
        model = tiny_model(config)
        names = data.draw(st.lists(st.sampled_from([*model.hook_names()]), max_size=4)) if model.hook_names() else []
        live(model, acts, [name for name in names if not name.endswith("hook_mask")])

    @pytest.mark.parametrize("fields", MODERN.values(), ids=MODERN)
    def test_of_a_modern_model_too(self, fields):
        model = tiny_model(**{"n_heads": 4, "d_model": 16, **fields})
        acts = [("step", 0), ("join", 0), ("step", 0), ("leave", 1), ("step", 0), ("alone", 0), ("step", 0)]
        patterns = [name for name in model.hook_names() if name.endswith("hook_pattern")]
        live(model, [*acts, ("leave", 1), *[("step", 0)] * 3], patterns)

    def test_may_record_what_another_does_not_and_be_drawn_in_another_way_from_any_token_on(self):
        model = tiny_model()
        points = [["blocks.0.attn.hook_pattern"], [], ["blocks.1.hook_resid_post", "hook_embed"]]
        texts, decoding = [some_text(model, at, names) for at, names in enumerate(points)], BatchedDecoding(model)
        for _ in range(12):
            step(decoding, texts)
        for text in texts:
            text.check()
        states = [text.state for text in texts]
        before = list(states[1].tokens)
        states[1].draw(GREEDY)
        states[1].record("blocks.0.attn.hook_pattern")
        found, options = decoding.step(states)[states[1]], texts[1].asked | {"sampling": GREEDY}
        (expected,) = generate(model, before, max_new_tokens=1, **{**options, "names_filter": points[0]})
        assert found.token_id == expected.token_id
        close(found.cache["pattern", 0][:, :, -1:], expected.cache["pattern", 0][:, :, -1:])


def passes_of(model, work):
    """The shapes, batch and positions, of the forward passes that some work takes."""
    sizes = []
    handle = model.ln_final.register_forward_hook(lambda module, inputs, output: sizes.append(tuple(output.shape[:2])))
    try:
        work()
    finally:
        handle.remove()
    return sizes


def ready(model, *lengths, **asked):
    """Texts whose prompts have been read."""
    decoding = BatchedDecoding(model)
    states = [DecodeState(model, [1] * length, sampling=GREEDY, **asked) for length in lengths]
    decoding.step(states)
    return decoding, states


class TestPasses:
    """Contexts hold 8 tokens here, so that windows move by 2."""

    def test_not_too_many_share_one(self):
        model, at_once = tiny_model(), PREFILL_TOKENS // 8
        states = [DecodeState(model, [1] * 8) for _ in range(at_once + 2)]
        assert passes_of(model, lambda: BatchedDecoding(model).step(states)) == [(at_once, 8), (2, 8)]

    def test_a_window_that_has_moved_is_read_again_once(self):
        model = tiny_model()
        decoding, states = ready(model, 7, 6)
        sizes = [sorted(passes_of(model, lambda: decoding.step(states))) for _ in range(6)]
        assert sizes == [[(2, 1)], *[[(1, 1), (1, 7)]] * 5]  # of either in turn

    def test_a_change_at_a_position_and_a_recorded_mask_have_passes_of_their_own(self):
        model = tiny_model()
        decoding, states = ready(model, 2, 3)
        for _ in range(2):
            states.append(DecodeState(model, [1] * 2, interventions=(Scale("blocks.0.attn.hook_z", 0, 3),)))
            states.append(DecodeState(model, [1] * 2, names_filter="blocks.0.attn.hook_mask"))
        assert sorted(passes_of(model, lambda: decoding.step(states))) == [*[(1, 2)] * 4, (2, 1)]
        assert sorted(passes_of(model, lambda: decoding.step(states))) == [*[(1, 1)] * 4, (2, 1)]

    def test_those_whose_cache_a_hook_has_cost_have_passes_of_their_own(self):
        model = tiny_model()
        decoding, states = ready(model, 3, 3)
        with model.hooked([("hook_embed", lambda tensor, hook: None)]):
            decoding.step(states)
        assert passes_of(model, lambda: decoding.step(states)) == [(1, 5), (1, 5)]

    def test_those_that_are_changed_alike_share_one(self):
        model = tiny_model(positions="rotary")
        decoding, states = ready(model, 2, 3)
        for change in (Scale("blocks.0.attn.hook_z", 0), Without("positions")):
            states += [DecodeState(model, [1] * length, interventions=(change,)) for length in (2, 2, 4)]
        assert sorted(passes_of(model, lambda: decoding.step(states))) == [(1, 4), (1, 4), (2, 1), (2, 2), (2, 2)]
        assert sorted(passes_of(model, lambda: decoding.step(states))) == [(2, 1), (3, 1), (3, 1)]

    def test_the_sources_are_not_read_again(self):
        """Not even where the window moves."""
        model, read = tiny_encoder_decoder(), []
        decoding = BatchedDecoding(model)
        states = [DecodeState(model, [1], source=[5] * length, sampling=GREEDY) for length in (2, 4)]
        model.encoder.ln_final.register_forward_hook(lambda *call: read.append("source"))
        model.decoder.blocks[0].cross_attn.kv.register_forward_hook(lambda *call: read.append("memory"))
        for _ in range(12):
            decoding.step(states)
        assert read == ["source", "memory"] * 2


class TestWhatGoesWrong:
    def test_who_fails_has_its_error_and_the_others_go_on(self):
        """In a pass that several share it is found out whose fault it was."""
        model = tiny_model()
        decoding, (broken, *others) = ready(model, 2, 3, 4)
        before = [list(state.tokens) for state in others]
        broken.tokens[-1] = model.config.vocab_size  # which the embedding doesn't know
        found = decoding.step([broken, *others])
        assert isinstance(found[broken], ValueError)
        for state, tokens in zip(others, before, strict=True):
            (expected,) = generate(model, tokens, max_new_tokens=1, sampling=GREEDY)
            assert found[state].token_id == expected.token_id
            close(found[state].logits, expected.logits)
        assert passes_of(model, lambda: decoding.step(others)) == [(2, 1)]

    def test_one_whose_token_cannot_be_drawn_stops_nobody(self, monkeypatch):
        model = tiny_model()
        decoding, (broken, other) = ready(model, 2, 3)
        monkeypatch.setattr(broken, "_points", iter(()))
        found = decoding.step([broken, other])
        assert isinstance(found[broken], StopIteration) and found[other].position == 4


def test_a_batch_that_all_have_left_holds_no_keys_and_values():
    model = tiny_model()
    decoding, states = ready(model, 2, 3, 4)
    decoding.step(states)
    assert not any(state.past.blocks[0].tensors for state in states)
    for state in states:
        decoding.release(state)
        assert state.past.blocks[0].tensors[0].shape[1] == state.past.length == len(state.tokens) - 1
    assert not decoding._caches
