"""Tests every page with models that have modern parts."""

import pytest

from tests.app_driver import every_page, outline, overview, said, start, step, text_of, use
from tests.helpers import MODERN
from tests.tiny_models import save_tiny


@every_page
@pytest.mark.parametrize("kind", ["all at once", "sandwich", "alibi", "scaled rotary"])
def test_a_page_opens(page, kind, tmp_path, monkeypatch):
    use(monkeypatch, tmp_path)
    save_tiny(tmp_path, "shakespeare", **{"n_heads": 4, **MODERN[kind], "pad_token_id": None})
    at = start(page)
    assert not said(at)
    if page == "Generate":
        assert len(text_of(step(at))) >= 1
    elif page == "Attention":
        assert overview(at).tensors["overview"].shape[:2] == (2, 4)
    elif page == "Inside":
        assert outline(at).tensors["next"].size
