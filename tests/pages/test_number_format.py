"""Tests how probabilities are written; number_format.test.mjs tests the browser on the same table."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.number_format import percent

TABLE = json.loads((Path(__file__).parents[1] / "percentages.json").read_text())


@pytest.mark.parametrize(("share", "written"), TABLE)
def test_probabilities_have_as_many_digits_as_tell(share, written):
    assert percent(share) == written


@given(st.floats(0, 1))
def test_only_0_and_1_are_written_as_such_and_all_others_within_half_a_percentage_point(share):
    written = percent(share)
    assert abs(float(written.strip("<>%")) / 100 - share) <= 0.005
    assert (written == "0%") == (share == 0) and (written == "100%") == (share == 1)
