"""Tests what words of English text are related, and that the head that looks from one to the other is found."""

import pytest
import torch

from tests.helpers import tiny_model
from transformer import Tokenizer
from transformer.training.word_relations import RELATIONS, measure_relations, passages, relations_in

WORDS = {
    "quotation": [
        ('"|My| dear|,"| said| he|, "|it| is|."', [(3, 0), (9, 6)]),
        ("“|Yes|”|, and| “|no|”", [(2, 0), (6, 4)]),
        ('so|"| he| said|.', []),  # what was opened before the text
    ],
    "inside": [('"|My| dear|,"| said| he|, "|it| is|."', [(1, 0), (2, 0), (7, 6), (8, 6)]), ('so|"| said| he', [])],
    "piece": [(" In|c|ont|rovert|ible| was|ily", [(2, 0), (3, 0), (4, 0)])],
    "pronoun": [
        ("Mrs|.| Ben|net| saw| Mr| Darcy|.| She| told| him|; he|", [(8, 2), (8, 3), (10, 6), (11, 6)]),
        ("Emma| looked| at| her|self|.| His| was| blue", [(3, 0), (4, 0)]),  # no man has been named
    ],
    "subject": [
        ("She| never| had| been| or| was", [(2, 0)]),  # of several verbs the first
        ("He| was| Mr|.| Darcy|, who| had| it|.| There| is", [(6, 4)]),  # not the word before, nor another sentence's
    ],
}


@pytest.mark.parametrize(
    ("name", "text", "pairs"), [(name, *case) for name, all_of in WORDS.items() for case in all_of]
)
def test_which_words_are_related(name, text, pairs):
    assert [tuple(pair) for pair in relations_in(text.split("|"))[name].nonzero().tolist()] == pairs


def test_passages_are_whole_sentences_of_a_line():
    text = "Mr. Elton came. He stayed!\nShe went. " + "A very long sentence that nobody reads. " * 2 + "No."
    found = [*passages(Tokenizer.of_characters(text), text, 30)]
    assert found == ["Mr. Elton came. He stayed!", "She went.", "No."]


def test_a_head_that_was_made_to_look_at_opening_marks_is_found_and_no_other_seems_to_do_anything():
    text = "“Ah,” said Emma; she never was “so.”\n" * 3
    tokenizer = Tokenizer.of_characters(text)
    opening, closing = tokenizer.encode("“”")
    shape = {"n_layers": 2, "n_heads": 2, "d_model": 8, "d_ff": 0, "norm": "none", "context_length": 64}
    model = tiny_model(vocab_size=tokenizer.vocab_size, positions="none", **shape)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.embed.weight[opening, 0] = model.embed.weight[closing, 1] = 1
        queries, keys, _ = model.blocks[1].attn.qkv.weight.unflatten(0, (3, 2, 4))
        queries[1, 0, 1], keys[1, 0, 0] = 40, 1
    found = {measure.relation: measure for measure in measure_relations(model, tokenizer, text)}
    marks = found.pop("quotation")
    assert (marks.layer, marks.head, marks.tokens, marks.examples[0]) == (1, 1, 6, text.splitlines()[0])
    assert marks.weight > 0.7 > 0.2 > marks.even
    assert {*found} == {*RELATIONS} - {"quotation"}
    for measure in found.values():
        assert measure.weight == pytest.approx(measure.even, abs=1e-3), measure.relation


def test_without_heads_there_are_none():
    text = "He was not there."
    tokenizer = Tokenizer.of_characters(text)
    assert measure_relations(tiny_model(n_layers=0, vocab_size=tokenizer.vocab_size), tokenizer, text) == []
