"""Tests sinusoidal and rotary positions against the papers' formulas."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import tiny_model, unpadded
from transformer import sinusoidal_encoding
from transformer.model import positions


def by_hand(length: int, d_model: int, base: float = 10000.0, first: int = 0) -> np.ndarray:
    """PE(pos, 2i) = sin(pos / base^(2i/d_model)), PE(pos, 2i+1) = cos of it, in float64."""
    column = np.arange(d_model)
    angle = np.arange(first, first + length)[:, None] / base ** ((column - column % 2) / d_model)
    return np.where(column % 2, np.cos(angle), np.sin(angle))


class TestSinusoidal:
    @given(st.integers(0, 20), st.integers(1, 8).map(lambda half: 2 * half), st.sampled_from([10000.0, 100.0]))
    def test_it_is_the_table_of_the_paper(self, length, d_model, base):
        table = sinusoidal_encoding(length, d_model, base)
        assert table.dtype == torch.float32
        np.testing.assert_allclose(table.numpy(), by_hand(length, d_model, base), atol=1e-6)

    def test_it_is_exact_far_out_and_rows_are_those_of_the_table(self):
        row = sinusoidal_encoding(10_001, 64)[10_000:].numpy()
        np.testing.assert_allclose(row, by_hand(1, 64, first=10_000), atol=1e-7)
        assert torch.equal(positions.sinusoidal_rows(5, 3, 8, torch.device("cpu")), sinusoidal_encoding(8, 8)[5:8])

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [((4, 7), "d_model is 7"), ((4, 0), "d_model is 0"), ((-1, 4), "length is -1"), ((4, 4, 0.0), "base is 0")],
    )
    def test_what_makes_no_table_is_refused(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            sinusoidal_encoding(*arguments)


class TestRotary:
    @given(st.integers(0, 20_000), st.sampled_from([6, 8]), st.sampled_from([None, 4]), st.booleans())
    def test_it_turns_each_pair_by_its_own_angle(self, start, width, dims, halves):
        """Neighbours, or the halves of the part that is turned; the rest is left as it is."""
        vectors = torch.randn(2, 5, 3, width, generator=torch.Generator().manual_seed(0))
        options = {"base": 50.0, "halves": halves} if dims else {"halves": halves}
        turned = positions.rotate(vectors, start=start, **({"dims": dims} if dims else {}), **options)
        count = dims or width
        for pos in range(5):
            for pair in range(count // 2):
                first, second = (pair, pair + count // 2) if halves else (2 * pair, 2 * pair + 1)
                angle = (start + pos) / (50.0 if dims else 10000) ** (2 * pair / count)
                x, y = vectors[:, pos, :, first], vectors[:, pos, :, second]
                expected = (x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle))
                torch.testing.assert_close(turned[:, pos, :, first], expected[0], atol=1e-5, rtol=0)
                torch.testing.assert_close(turned[:, pos, :, second], expected[1], atol=1e-5, rtol=0)
        assert torch.equal(turned[..., count:], vectors[..., count:])
        assert positions.rotate(vectors.bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize("kind", ["sinusoidal", "rotary"])
def test_tables_first_needed_in_inference_mode_serve_training_too(kind):
    positions._sinusoidal_table.cache_clear()
    positions._rotation_table.cache_clear()
    model = tiny_model(positions=kind)
    tokens = unpadded(model.config)
    with torch.inference_mode():
        model(tokens)
    scale = torch.ones(8, requires_grad=True)
    hooks = [("hook_pos_embed", lambda rows, hook: rows * scale)] if kind == "sinusoidal" else []
    model.run_with_hooks(tokens, fwd_hooks=hooks).sum().backward()
    assert model.embed.weight.grad is not None
