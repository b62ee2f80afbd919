"""Tests a sample of what `python -m tests.browser.reach_everything` opens."""

from random import Random

import pytest

from tests.browser.reach_everything import CHECKPOINTS, reach

pytest.importorskip("playwright.sync_api")

SEED, MODELS, NAMES = 37, 1, 1


@pytest.mark.parametrize("model", Random(SEED).sample(sorted(path.name for path in CHECKPOINTS.iterdir()), MODELS))
def test_any_tensor_and_parameter_is_four_clicks_from_the_first_view_and_found_by_name(model, app_url, new_page):
    _, problems = reach(new_page(), app_url, model, lambda names: Random(f"{SEED} {model}").sample(names, NAMES))
    assert not problems
