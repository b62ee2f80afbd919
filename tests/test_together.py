"""Texts that are written together: each is what it would be alone, whoever joins, leaves or fails beside it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import MODERN, any_configs, close, configs, tiny_encoder_decoder, tiny_model
from transformer import Sampling, Scaled, generate, sampling_distribution
from transformer.inference.generation import Text
from transformer.inference.together import WINDOWS_AT_ONCE, Together, Windows

GREEDY = Sampling(temperature=0)
WHAT = st.sampled_from(["join", "leave", "alone", "step", "step", "step"])


def is_close_call(logits, sampling, point):
    """Whether a token is decided by less than what rounding can change."""
    if sampling.temperature == 0:
        first, second = logits.topk(2).values.tolist()
        return first - second < 1e-5 * max(abs(first), 1)
    borders = sampling_distribution(logits, sampling).cumsum(0)
    return bool(((borders - point).abs() < 1e-5).any())


class Visitor:
    """A text, what is asked for it, and the steps that came."""

    def __init__(self, model, prompt, **asked):
        self.prompt, self.asked, self.steps = prompt, asked, []
        self.text = Text(model, prompt, **asked)

    def check(self):
        """All that came is what `generate` yields."""
        alone = generate(self.text.model, self.prompt, max_new_tokens=len(self.steps), **self.asked)
        for step, expected in zip(self.steps, alone, strict=True):
            assert (step.position, step.point) == (expected.position, expected.point)
            close(step.logits, expected.logits)
            if step.token_id != expected.token_id:
                assert is_close_call(expected.logits, self.asked["sampling"], step.point)
                return  # from here on, they are two texts
            assert list(step.cache) == list(expected.cache)
            for name, tensor in expected.cache.items():
                assert step.cache[name].shape == tensor.shape
                if tensor.is_floating_point():
                    close(step.cache[name], tensor)


def step(room, visitors):
    """One token each of all that are in the room."""
    found = room.step()
    for visitor in visitors:
        if visitor.text in found:
            assert not isinstance(found[visitor.text], Exception), found[visitor.text]
            visitor.steps.append(found[visitor.text])


def some_visitor(model, number, recorded=()):
    """A text of its own length, source, sampling, and recorded points."""
    config = model.config
    prompt = [(3 * i + number) % config.vocab_size for i in range(1 + 5 * number % 7)]
    source = [(2 * i + number) % config.vocab_size for i in range(1 + 3 * number % config.context_length)]
    sampling = GREEDY if number % 4 == 3 else Sampling(0.9, top_k=8, seed=number)
    asked = {"source": source} if config.architecture == "encoder-decoder" else {}
    return Visitor(model, prompt, sampling=sampling, names_filter=recorded, **asked)


def live(model, acts, recorded=()):
    """Texts that join, leave, go on alone and come back, as the acts say."""
    room, visitors = Together(model), [some_visitor(model, number, recorded) for number in range(3)]
    for visitor in visitors:
        room.join(visitor.text)
    for what, which in acts:
        visitor = visitors[which % len(visitors)]
        if what == "step":
            step(room, visitors)
        elif what == "join":
            visitors.append(some_visitor(model, len(visitors), recorded))
            room.join(visitors[-1].text)
        elif visitor.text not in room.texts:
            room.join(visitor.text)
        else:
            room.leave(visitor.text)
            if what == "alone":
                visitor.steps.append(visitor.text.step())
    step(room, visitors)
    for visitor in visitors:
        visitor.check()


ACTS = st.lists(st.tuples(WHAT, st.integers(0, 9)), min_size=4, max_size=20)


class TestEachText:
    @settings(max_examples=40)
    @given(any_configs(), ACTS, st.data())
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
        live(model, [*acts, ("leave", 1), ("join", 0), *[("step", 0)] * 5], patterns)

    def test_may_record_what_another_does_not(self):
        model = tiny_model()
        points = [["blocks.0.attn.hook_pattern"], [], ["blocks.1.hook_resid_post", "hook_embed"]]
        visitors = [some_visitor(model, number, recorded) for number, recorded in enumerate(points)]
        room = Together(model)
        for visitor in visitors:
            room.join(visitor.text)
        for _ in range(4):
            step(room, visitors)
        for visitor in visitors:
            visitor.check()

    def test_may_be_drawn_and_recorded_in_another_way_from_any_token_on(self):
        model = tiny_model()
        visitors = [some_visitor(model, number) for number in range(2)]
        room = Together(model)
        for visitor in visitors:
            room.join(visitor.text)
        step(room, visitors)
        before = list(visitors[0].text.tokens)
        visitors[0].text.draw(GREEDY)
        visitors[0].text.record("blocks.0.attn.hook_pattern")
        found = room.step()[visitors[0].text]
        (expected,) = generate(model, before, max_new_tokens=1, sampling=GREEDY)
        assert found.token_id == expected.token_id
        assert found.cache["pattern", 0].shape == (1, 2, 1, len(before))


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
    """A room of texts whose prompts have been read."""
    room = Together(model)
    for length in lengths:
        room.join(Text(model, [1] * length, sampling=GREEDY, **asked))
    room.step()
    return room


class TestPasses:
    def test_all_share_one_for_their_newest_tokens(self):
        model = tiny_model()
        room = ready(model, 2, 3, 5)
        assert passes_of(model, room.step) == [(3, 1)]

    def test_of_one_text_are_those_that_it_has_alone(self):
        model = tiny_model()
        room = ready(model, 2)
        assert passes_of(model, room.step) == [(1, 1)]
        room = ready(model, 2, 3)
        room.step()
        room.leave(room.texts[0])
        assert passes_of(model, room.step) == [(1, 1)]

    def test_a_prompt_a_window_and_a_changed_model_have_one_of_their_own(self):
        model = tiny_model()
        room = ready(model, 2, 3)
        room.join(Text(model, [1] * 4))
        room.join(Text(model, [1] * 9))
        room.join(Text(model, [1] * 2, interventions=(Scaled("blocks.0.attn.hook_z", 0),)))
        room.join(Text(model, [1] * 2, names_filter="blocks.0.attn.hook_mask"))
        assert sorted(passes_of(model, room.step)) == [(1, 2), (1, 2), (1, 4), (1, 8), (2, 1)]
        assert sorted(passes_of(model, room.step)) == [(1, 1), (1, 1), (1, 8), (3, 1)]

    def test_the_sources_are_not_read_again(self):
        model, read = tiny_encoder_decoder(), []
        room = Together(model)
        for length in (2, 4):
            room.join(Text(model, [1], source=[5] * length, sampling=GREEDY))
        model.encoder.ln_final.register_forward_hook(lambda *call: read.append("source"))
        model.decoder.blocks[0].cross_attn.kv.register_forward_hook(lambda *call: read.append("memory"))
        for _ in range(4):
            room.step()
        assert read == ["source", "memory"] * 2


class TestWindows:
    """Texts past the context, of 8 tokens here."""

    @settings(max_examples=20)
    @given(configs(), st.data())
    def test_each_is_what_is_written_alone(self, config, data):
        model = tiny_model(config)
        names = [name for name in model.hook_names() if not name.endswith("hook_mask")]
        recorded = data.draw(st.lists(st.sampled_from(names), max_size=4)) if names else []
        room, visitors = Windows(model), []
        for number in range(3):
            prompt = [(3 * i + number) % config.vocab_size for i in range(config.context_length + 1 + 2 * number)]
            visitors.append(Visitor(model, prompt, sampling=Sampling(0.9, seed=number), names_filter=recorded))
            assert room.shares(visitors[-1].text)
            room.join(visitors[-1].text)
        step(room, visitors)
        room.leave(visitors[1].text)
        step(room, visitors)
        visitors[1].steps.append(visitors[1].text.step())
        room.join(visitors[1].text)
        step(room, visitors)
        for visitor in visitors:
            assert len(visitor.steps) == 3
            visitor.check()

    def test_several_share_a_pass_and_not_too_many(self):
        room = Windows(tiny_model())
        for number in range(WINDOWS_AT_ONCE + 2):
            room.join(Text(room.model, [1] * (9 + number)))
        assert passes_of(room.model, room.step) == [(WINDOWS_AT_ONCE, 8), (2, 8)]
        assert not room.shares(Text(room.model, [1] * 8))
        assert not room.shares(Text(room.model, [1] * 9, interventions=(Scaled("blocks.0.attn.hook_z", 0),)))
        assert not room.shares(Text(room.model, [1] * 9, names_filter="blocks.0.attn.hook_mask"))
        with pytest.raises(ValueError, match="another model"):
            room.join(Text(tiny_model(seed=1), [1] * 9))

    def test_the_keys_and_values_of_before_are_let_go(self):
        room = Windows(tiny_model())
        text = Text(room.model, [1] * 8)
        text.step()
        assert text.past.length == 8
        room.join(text)
        room.leave(text)
        assert text.past is None


class TestWhatGoesWrong:
    def test_who_fails_leaves_and_the_others_go_on(self):
        """In a pass that several share it is found out whose fault it was."""
        model = tiny_model()
        room = ready(model, 2, 3, 4)
        broken, *others = room.texts
        before = [list(text.tokens) for text in others]
        broken.tokens[-1] = model.config.vocab_size  # which the embedding doesn't know
        found = room.step()
        assert isinstance(found[broken], ValueError) and room.texts == others
        for text, tokens in zip(others, before, strict=True):
            (expected,) = generate(model, tokens, max_new_tokens=1, sampling=GREEDY)
            assert found[text].token_id == expected.token_id
            close(found[text].logits, expected.logits)
        assert set(room.step()) == set(others)

    def test_one_whose_token_cannot_be_drawn_stops_nobody(self, monkeypatch):
        model = tiny_model()
        room = ready(model, 2, 3)
        broken, other = room.texts
        monkeypatch.setattr(broken, "_points", iter(()))
        found = room.step()
        assert isinstance(found[broken], StopIteration) and found[other].position == 4
        assert room.texts == [other]

    def test_a_text_of_another_model_is_refused(self):
        with pytest.raises(ValueError, match="another model"):
            Together(tiny_model()).join(Text(tiny_model(seed=1), [1]))


def test_an_empty_room_holds_no_keys_and_values():
    model = tiny_model()
    room = ready(model, 2, 3, 4)
    texts, step = list(room.texts), room.step()
    assert all(text.past.blocks[0].keys is None for text in texts) and len(step) == 3
    for text in texts:
        room.leave(text)
        assert text.past.blocks[0].keys.shape[1] == text.past.length == len(text.tokens) - 1
    assert not any(columns._stored for columns in room._shared.blocks)
