"""Tests batched decoding: each text is the same as alone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import MODERN, any_configs, close, tiny_encoder_decoder, tiny_model
from transformer import MeanAblate, Sampling, Scale, Steer, Without, generate, sampling_distribution
from transformer.inference.batched_decoding import PREFILL_TOKENS, BatchedDecoding
from transformer.inference.generation import DecodeState

GREEDY = Sampling(temperature=0)


def is_close_call(logits, sampling, point):
    """Whether a token is decided by less than what rounding can change."""
    if sampling.temperature == 0:
        first, second = logits.topk(2).values.tolist()
        return first - second < 1e-5 * max(abs(first), 1)
    borders = sampling_distribution(logits, sampling).cumsum(0)
    return bool(((borders - point).abs() < 1e-5).any())


def check_steps(steps, model, prompt, asked):
    """All that came is what `generate` yields, up to where rounding makes it another text."""
    alone = generate(model, prompt, max_new_tokens=len(steps), **asked)
    for step, expected in zip(steps, alone, strict=True):
        assert (step.position, step.point) == (expected.position, expected.point)
        assert step.window_start == expected.window_start
        close(step.logits, expected.logits)
        if step.token_id != expected.token_id:
            assert is_close_call(expected.logits, asked["sampling"], step.point)
            return
        assert list(step.cache) == list(expected.cache)
        for name, tensor in expected.cache.items():
            assert step.cache[name].shape == tensor.shape
            if tensor.is_floating_point():
                close(step.cache[name], tensor)


def asked_of(model, number):
    """Prompt, source, sampling and changes of one of several texts; some of them can share a pass, others can't."""
    config, asked = model.config, {"sampling": GREEDY if number % 4 == 3 else Sampling(0.9, top_k=8, seed=number)}
    prompt = [(3 * i + number) % config.vocab_size for i in range(1 + 5 * number % 11)]
    if config.architecture == "encoder-decoder":
        asked["source"] = [(2 * i + number) % config.vocab_size for i in range(1 + 3 * number % config.context_length)]
    points = [name for name in model.hook_names() if name.endswith("hook_z") and not name.startswith("encoder.")]
    if points:
        head, source = Scale(points[-1], 0), (1, 2) if "source" in asked else ()
        steered = Steer(points[0], tokens=(3,), against=(4,), source=source)
        changes = [(), (head,), (head, steered), (MeanAblate(points[0]),), (Scale(points[0], 0, 9),), (head,), ()]
        asked["interventions"] = changes[number % len(changes)]
    return prompt, asked


class Written:
    """A text, what is asked for it, and the steps that came."""

    def __init__(self, model, number, recorded=()):
        self.prompt, self.asked = asked_of(model, number)
        self.asked["names_filter"], self.steps = recorded if number % 3 else (), []
        self.state = DecodeState(model, self.prompt, **self.asked)


def live(model, acts, recorded):
    """Texts that join, leave, go on alone and come back, as the acts say."""
    decoding, texts, resting = BatchedDecoding(model), [Written(model, number, recorded) for number in range(3)], set()
    for what, which in [*acts, ("return", 0), ("step", 0)]:
        text = texts[which % len(texts)]
        if what == "join":
            texts.append(Written(model, len(texts), recorded))
        elif what == "leave":
            resting ^= {text}
        elif what == "return":
            resting.clear()
        elif what == "alone":
            decoding.release(text.state)
            text.steps.append(text.state.step())
        else:
            active = [text for text in texts if text not in resting]
            found = decoding.step([text.state for text in active])
            for text in active:
                assert not isinstance(found[text.state], Exception), found[text.state]
                text.steps.append(found[text.state])
    for text in texts:
        check_steps(text.steps, model, text.prompt, text.asked)


ACTS = st.lists(
    st.tuples(st.sampled_from(["join", "leave", "alone", "step", "step", "step"]), st.integers(0, 9)),
    min_size=4,
    max_size=20,
)


class TestEachText:
    @settings(max_examples=10)
    @given(any_configs(context_length=8), ACTS, st.data())
    def test_is_what_is_written_alone_whoever_joins_and_leaves(self, config, acts, data):
        """Of every configuration, past the context too; tokens, logits, random numbers, and whatever is recorded."""
        model = tiny_model(config)
        names = data.draw(st.lists(st.sampled_from(model.hook_names()), max_size=4))
        live(model, acts, [name for name in names if not name.endswith("hook_mask")])

    @pytest.mark.parametrize("fields", MODERN.values(), ids=MODERN)
    def test_of_a_modern_model_too(self, fields):
        model = tiny_model(**{"n_heads": 4, "d_model": 16, **fields})
        acts = [("step", 0), ("join", 0), ("step", 0), ("leave", 1), ("step", 0), ("alone", 0), ("step", 0)]
        patterns = [name for name in model.hook_names() if name.endswith("hook_pattern")]
        live(model, [*acts, ("leave", 1), *[("step", 0)] * 3], patterns)

    def test_may_be_drawn_and_recorded_in_another_way_from_any_token_on(self):
        model = tiny_model()
        decoding, states = ready(model, 2, 3)
        before = list(states[0].tokens)
        states[0].draw(Sampling(seed=7))
        states[0].record("blocks.0.attn.hook_pattern")
        step = decoding.step(states)[states[0]]
        asked = {"sampling": Sampling(seed=7), "names_filter": "blocks.0.attn.hook_pattern"}
        (expected,) = generate(model, before, max_new_tokens=1, **asked)
        assert (step.token_id, step.point) == (expected.token_id, expected.point)
        close(step.cache["pattern", 0][:, :, -1:], expected.cache["pattern", 0][:, :, -1:])


def passes_of(model, work):
    """The shapes, batch and positions, of the forward passes that some work takes."""
    sizes = []
    handle = model.ln_final.register_forward_hook(lambda module, inputs, output: sizes.append(tuple(output.shape[:2])))
    work()
    handle.remove()
    return sorted(sizes)


def ready(model, *lengths):
    """Texts whose prompts have been read."""
    decoding = BatchedDecoding(model)
    states = [DecodeState(model, [1] * length, sampling=GREEDY) for length in lengths]
    decoding.step(states)
    return decoding, states


AT_ONCE = PREFILL_TOKENS // 8
PLACE = {"interventions": (Scale("blocks.0.attn.hook_z", 0, 3),)}
HEAD, ORDER = {"interventions": (Scale("blocks.0.attn.hook_z", 0),)}, {"interventions": (Without("positions"),)}
MASK = {"names_filter": "blocks.0.attn.hook_mask"}


class TestPasses:
    """Contexts hold 8 tokens here, so that windows move by 2."""

    @pytest.mark.parametrize(
        ("texts", "passes"),
        [
            ([(8, {})] * (AT_ONCE + 2), [[(2, 8), (AT_ONCE, 8)]]),  # not too many share one
            ([(7, {}), (6, {})], [[(1, 6), (1, 7)], [(2, 1)], *[[(1, 1), (1, 7)]] * 5]),  # a moved window is read once
            # A change at a position, or a recorded mask, has a pass of its own; those that are changed alike share one.
            ([(2, {}), (2, {}), *[(2, PLACE), (2, MASK)] * 2], [[*[(1, 2)] * 4, (2, 2)], [*[(1, 1)] * 4, (2, 1)]]),
            (
                [(length, changed) for changed in (HEAD, ORDER) for length in (2, 2, 4)],
                [[(1, 4), (1, 4), (2, 2), (2, 2)], [(3, 1), (3, 1)]],
            ),
        ],
    )
    def test_are_shared_by_those_that_can(self, texts, passes):
        model = tiny_model(positions="rotary")
        decoding = BatchedDecoding(model)
        states = [DecodeState(model, [1] * length, sampling=GREEDY, **asked) for length, asked in texts]
        assert [passes_of(model, lambda: decoding.step(states)) for _ in passes] == passes

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


def test_who_fails_has_its_error_and_the_others_go_on(monkeypatch):
    """In a pass that several share it is found out whose fault it was."""
    model = tiny_model()
    decoding, (broken, undrawn, *others) = ready(model, 2, 3, 3, 4)
    before = [list(state.tokens) for state in others]
    broken.tokens[-1] = model.config.vocab_size  # which the embedding doesn't know
    monkeypatch.setattr(undrawn, "_points", iter(()))
    found = decoding.step([broken, undrawn, *others])
    assert isinstance(found[broken], ValueError) and isinstance(found[undrawn], StopIteration)
    for state, tokens in zip(others, before, strict=True):
        check_steps([found[state]], model, tokens, {"sampling": GREEDY})
    assert passes_of(model, lambda: decoding.step(others)) == [(2, 1)]
