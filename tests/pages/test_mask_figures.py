"""Tests the figures of the page Masks."""

import numpy as np
import pytest

from pages.ui.components import batch_table, events, matrix
from pages.ui.components.masks import MaskPanel, build_payload
from pages.ui.figures import lines
from transformer import Recording

PADDED = np.array([[False, False, True], [False, False, False]])
LABELS = [["a", "␣", "∅"], ["<b>", "$x$", "&lt;"]]


class TestMasks:
    @pytest.mark.parametrize("size", [1, 3, 96])
    def test_each_cell_is_sent_as_visible_or_hidden_row_by_row(self, size):
        mask = np.tri(size, dtype=bool)
        panel = MaskPanel("Causal", ["<b>"] * size, mask, 5, "Hides the future.")
        (sent,) = build_payload([panel])["panels"]
        assert (np.array(list(sent["mask"])) == "1").reshape(size, size).tolist() == mask.tolist()
        assert (sent["labels"], sent["offset"], sent["title"], sent["words"]) == (
            ["<b>"] * size,
            5,
            "Causal",
            "Hides the future.",
        )

    def test_labels_that_do_not_fit_are_refused(self):
        with pytest.raises(ValueError, match=r"2 labels were given for a mask of \(3, 3\)"):
            build_payload([MaskPanel("Causal", ["a", "b"], np.tri(3, dtype=bool), 0, "")])


class TestABatch:
    def test_each_cell_is_sent_with_its_token_as_it_is(self):
        sent = batch_table.build_payload(LABELS, PADDED, [1, 4], 1)
        assert sent == {"labels": LABELS, "padding": PADDED.tolist(), "lines": [1, 4], "selected": 1}

    @pytest.mark.parametrize("lines", [[1], [1, 2, 3]])
    def test_labels_that_do_not_fit_are_refused(self, lines):
        with pytest.raises(ValueError, match="rows of labels"):
            batch_table.build_payload(LABELS, PADDED, lines, 0)
        with pytest.raises(ValueError, match="rows of labels"):
            batch_table.build_payload([["a"], ["b"]], PADDED, [1, 2], 0)


class TestAMatrix:
    def test_its_numbers_are_sent_as_they_are_with_a_range_that_is_never_empty(self):
        limits = {(0.02, -0.01): 0.02, (3.0, -1.5): 3, (0.8, 0.1): 1, (1.0000001, 0): 1, (0, 0): 1, (np.nan, np.inf): 1}
        for values, limit in limits.items():
            sent = Recording.from_bytes(matrix.build_payload(np.array([values]), {"selected": [0, 1]}))
            np.testing.assert_array_equal(sent.tensors["values"], np.array([values], np.float32))
            assert sent.metadata["about"]["limit"] == pytest.approx(limit)

    def test_what_does_not_fit_is_refused(self):
        for values, selected in (([1.0], None), (np.ones((0, 3)), None), (np.ones((2, 3)), [2, 0])):
            with pytest.raises(ValueError, match="shape"):
                matrix.build_payload(np.array(values), {"selected": selected})

    def test_a_cell_that_is_not_there_is_not_chosen(self, monkeypatch):
        chosen = []
        told = [{"row": 1, "column": 2}, None, [], {"row": 2, "column": 0}, {"row": True, "column": 0}, {"row": 0}]
        monkeypatch.setattr(matrix, "_mount", lambda **call: call["on_chosen_change"]())
        for value in told:
            monkeypatch.setattr(events, "event_value", lambda key, event, value=value: value)
            matrix.matrix(np.ones((2, 3)), key="m", name="", across="", down="", unit="", on_choose=chosen.append)
        assert chosen == [(1, 2)]


class TestPredictions:
    def test_a_line_each_told_apart_by_colour_dash_and_symbol(self):
        values = {"with": np.array([0.1, 0.2]), "without": np.array([0.3, 0.4])}
        figure = lines.lines_by_position(values, list("abc"), list("bc?"), unit="probability", offset=7)
        with_, without = figure.data
        assert (with_.name, without.name) == ("with", "without")
        assert list(with_.x) == [7, 8] and list(without.y) == [0.3, 0.4]
        assert with_.line.color != without.line.color and with_.line.dash != without.line.dash
        assert with_.marker.symbol != without.marker.symbol
        assert list(with_.text) == ["after a, before b", "after b, before c"]
        assert list(figure.layout.xaxis.ticktext) == list("abc")
        assert figure.layout.xaxis.range == (6.5, 9.5)

    @pytest.mark.parametrize(
        ("values", "top", "end"),
        [([2.0, 4.0], None, 4.2), ([0.2], 1.0, 1.05), ([1e-6], None, 0.105), ([], None, 0.105)],
    )
    def test_the_axis_ends_where_it_is_told_or_where_the_numbers_end(self, values, top, end):
        labels = ["a"] * max(len(values), 1)
        figure = lines.lines_by_position({"with": np.array(values)}, labels, labels, unit="nats", top=top)
        assert figure.layout.yaxis.range[1] == pytest.approx(end)
