"""Tests generation from a source, alone and in batches."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import any_configs, configs, encoder_decoder_configs, some_inputs, tiny_encoder_decoder, tiny_model
from transformer import KeyValueCache, Sampling, choose_token, generate
from transformer.inference.generation import write_greedily
from transformer.inference.windows import window_start

START, SOURCE = [1], [3, 5, 7, 2]
GREEDY = Sampling(temperature=0)


def write(model, prompt=START, n: int = 6, source=SOURCE, **options) -> list[int]:
    return [step.token_id for step in generate(model, prompt, max_new_tokens=n, source=source, **options)]


class TestTheCache:
    @settings(max_examples=30)
    @given(
        encoder_decoder_configs() | encoder_decoder_configs(context_length=9),
        st.lists(st.integers(0, 10), min_size=1, max_size=6),
        st.integers(1, 7),
    )
    def test_every_step_is_what_a_pass_over_everything_gives(self, config, source, prompt_length):
        """Also past the context length, and where source or text holds the token that pads."""
        model = tiny_model(config)
        sequence = [(3 * i + 1) % config.vocab_size for i in range(prompt_length)]
        sampling = Sampling(seed=5)
        n = config.context_length + 2
        steps = list(generate(model, sequence, max_new_tokens=n, sampling=sampling, source=source))
        assert len(steps) == n
        for step in steps:
            assert step.position == len(sequence)
            with torch.no_grad():
                window = torch.tensor([sequence[window_start(len(sequence), config.context_length) :]])
                logits = model(torch.tensor([source]), window)[0, -1]
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

    @given(configs(pad_token_id=0), st.integers(0, 3))
    def test_a_decoder_alone_goes_on_from_padding_as_it_would_without_a_cache(self, config, pads):
        model = tiny_model(config)
        sequence = [0] * pads + [4, 0, 2]
        for step in generate(model, sequence, max_new_tokens=3, sampling=Sampling(seed=2)):
            with torch.no_grad():
                logits = model(torch.tensor([sequence[window_start(len(sequence), config.context_length) :]]))[0, -1]
            torch.testing.assert_close(step.logits, logits, atol=1e-4, rtol=1e-4)
            sequence.append(step.token_id)

    def test_the_source_is_read_once_and_each_step_computes_the_newest_token_alone(self):
        model = tiny_encoder_decoder()
        read = []
        model.encoder.ln_final.register_forward_hook(lambda *call: read.append("source"))
        model.decoder.blocks[0].cross_attn.kv.register_forward_hook(lambda *call: read.append("memory"))
        steps = list(generate(model, [1, 2], max_new_tokens=5, source=SOURCE, names_filter=None))
        assert read == ["source", "memory"]
        assert [step.cache["decoder.hook_embed"].shape[1] for step in steps] == [2, 1, 1, 1, 1]
        patterns = [step.cache["pattern", 0, "cross_attn"].shape for step in steps]
        assert patterns == [(1, 2, 2, 4), *[(1, 2, 1, 4)] * 4]

    def test_the_encoders_points_are_recorded_in_the_first_step_alone(self):
        model = tiny_encoder_decoder()
        for number, step in enumerate(generate(model, START, max_new_tokens=4, source=SOURCE, names_filter=None)):
            of_the_encoder = [name for name in step.cache if name.startswith("encoder.")]
            expected = [name for name in model.hook_names() if name.startswith("encoder.")]
            expected = [name for name in expected if not name.endswith("hook_result")]
            assert of_the_encoder == (expected if number == 0 else [])
            assert "decoder.blocks.1.cross_attn.hook_pattern" in step.cache

    def test_two_texts_at_once_do_not_mix(self):
        model = tiny_encoder_decoder()
        expected = write(model, sampling=GREEDY), write(model, source=[9, 8], sampling=GREEDY)
        first = generate(model, START, max_new_tokens=6, sampling=GREEDY, source=SOURCE)
        second = generate(model, START, max_new_tokens=6, sampling=GREEDY, source=[9, 8])
        taken = [(a.token_id, b.token_id) for a, b in zip(first, second, strict=True)]
        assert tuple(map(list, zip(*taken, strict=True))) == expected


class TestWhatIsWritten:
    def test_it_depends_on_the_source(self):
        model = tiny_encoder_decoder()
        first, second = (
            next(generate(model, START, max_new_tokens=1, source=source)).logits for source in (SOURCE, [9, 8])
        )
        assert not torch.allclose(first, second)

    def test_it_ends_after_a_stop_token_which_is_still_reported(self):
        model = tiny_encoder_decoder()
        tokens = write(model, n=7, sampling=Sampling(seed=3))
        stop = tokens[3]
        first = tokens.index(stop)
        assert write(model, n=7, sampling=Sampling(seed=3), stop_tokens=(stop,)) == tokens[: first + 1]

    def test_a_seed_decides_the_text(self):
        model = tiny_encoder_decoder()
        texts = [write(model, n=20, sampling=Sampling(seed=seed)) for seed in (1, 1, 2)]
        assert texts[0] == texts[1] != texts[2]

    def test_the_source_may_be_a_tensor(self):
        model = tiny_encoder_decoder()
        expected = write(model, sampling=GREEDY)
        assert write(model, source=torch.tensor(SOURCE), sampling=GREEDY) == expected
        assert write(model, source=torch.tensor([SOURCE]), sampling=GREEDY) == expected

    def test_with_interventions_each_step_sees_source_and_text_whole(self):
        model = tiny_encoder_decoder()
        shapes = []

        def silence(z, hook):
            shapes.append((hook.name.split(".")[0], z.shape[1]))
            return z * 0

        hooks = [("encoder.blocks.0.attn.hook_z", silence), ("decoder.blocks.0.cross_attn.hook_z", silence)]
        steps = list(generate(model, START, max_new_tokens=3, sampling=GREEDY, fwd_hooks=hooks, source=SOURCE))
        assert shapes == [seen for pos in (1, 2, 3) for seen in (("encoder", len(SOURCE)), ("decoder", pos))]
        sequence = list(START)
        for step in steps:
            inputs = torch.tensor([SOURCE]), torch.tensor([sequence])
            expected = model.run_with_hooks(*inputs, fwd_hooks=hooks)[0, -1]
            torch.testing.assert_close(step.logits, expected)
            sequence.append(step.token_id)


class TestBadInput:
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

    @pytest.mark.parametrize(("prompt", "message"), [([], "at least one token"), ([11], "Token id 11")])
    def test_a_prompt_it_can_not_go_on_from_is_refused_at_once(self, prompt, message):
        with pytest.raises(ValueError, match=message):
            generate(tiny_encoder_decoder(), prompt, max_new_tokens=1, source=SOURCE)

    def test_a_model_without_an_encoder_refuses_a_source(self):
        with pytest.raises(ValueError, match=r"has no encoder, so it reads no source; put all of it into the prompt\."):
            generate(tiny_model(), START, max_new_tokens=1, source=SOURCE)


class TestManyTextsAtOnce:
    @settings(max_examples=30)
    @given(any_configs(), st.integers(1, 3), st.integers(1, 4))
    def test_greedily_is_what_each_text_alone_gives_at_temperature_0(self, config, length, n):
        model = tiny_model(config)
        *source, tokens = some_inputs(config)
        tokens = tokens[:, -length:]
        together = write_greedily(model, tokens, n, source=source[0] if source else None)
        assert together.shape == (len(tokens), n)
        for row in range(len(tokens)):
            read = source[0][row] if source else None
            assert together[row].tolist() == write(model, tokens[row], n, read, sampling=GREEDY)

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

    def test_nothing_is_written_where_nothing_is_asked_for(self):
        assert write_greedily(tiny_model(), torch.tensor([[1], [2]]), 0).shape == (2, 0)

    def test_no_gradient_is_kept(self):
        model = tiny_encoder_decoder()
        written = write_greedily(model, torch.tensor([START]), 3, source=torch.tensor([SOURCE]))
        assert not written.requires_grad
        assert written.dtype == torch.int64
