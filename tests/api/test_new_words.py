"""Tests words that a vocabulary lacks: every answer calls them as they were typed."""

import json

import numpy as np
import pytest

from tests.api.conftest import events_of
from tests.tiny_models import save_newcomer
from transformer import Recording
from transformer.api.model_library import Library

STORY = "Aliya took the 🏀. She went to the dojo. Where is the 🏀?"
NEW = ["Aliya", "🏀", "dojo"]


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Library:
    folder = tmp_path_factory.mktemp("newcomers")
    save_newcomer(folder)
    save_newcomer(folder, "filler", architecture="encoder-only")
    return Library(folder)


@pytest.fixture
def ask(client):
    """`ask(path, …)`: an answer, as JSON or a recording."""

    def asked(path, **values):
        response = client.get(path, params={"model": "newcomer", **values})
        assert response.status_code == 200, response.text
        return response.json() if "json" in response.headers["content-type"] else Recording.from_bytes(response.content)

    return asked


def ids(ask, text, **more) -> str:
    return ",".join(map(str, ask("/tokens", text=text, **more)["tokens"]))


def test_a_text_s_new_words_come_after_those_that_are_given(ask):
    read = ask("/tokens", text="ALIYA gave Łukasz the 🏀.", new_words=NEW)
    assert read["new_words"] == [*NEW, "Łukasz"] and read["problem"] is None
    assert read["labels"] == ["Aliya", "gave", "Łukasz", "the", "🏀", "."]
    read = ask("/tokens", text=" ".join("abcdefghij"), new_words=["Zorp"])
    assert "“h” (character 15), “i” (character 17), “j” (character 19)." in read["problem"]
    assert read["problem"].endswith(" A text can have up to 8 new words. Remove them, or pick another model.")
    assert read["known"].split() == [*"abcdefg"] and read["new_words"] == ["Zorp", *"abcdefg"]


def labels_in(answer) -> str:
    return json.dumps(answer.metadata if isinstance(answer, Recording) else answer, ensure_ascii=False)


QUESTIONS = {"outline": {}, "overview": {}, "scores": {"seed": 1}, "predictions": {}, "tensors": {"names": "logits"}}


@pytest.mark.parametrize("path", QUESTIONS)
def test_answers_call_new_words_as_they_were_typed_for_the_same_numbers(ask, path):
    tokens = ids(ask, STORY)
    others = ["小明", "👨\u200d👩\u200d👧", "dojo"]
    assert tokens == ids(ask, STORY.replace("Aliya", others[0]).replace("🏀", others[1]))
    of_text = ask(f"/{path}", text=STORY, **QUESTIONS[path])
    of_tokens = [ask(f"/{path}", tokens=tokens, new_words=words, **QUESTIONS[path]) for words in (NEW, others, [])]
    first_words = [NEW[0], NEW[0], others[0], "[new1]"]
    for answer, first in zip([of_text, *of_tokens], first_words, strict=True):
        assert [word for word in dict.fromkeys(first_words) if f'"{word}"' in labels_in(answer)] == [first]
        for name, array in answer.tensors.items():
            np.testing.assert_array_equal(array, of_text.tensors[name])


def test_what_is_written_filled_in_and_exported_has_the_names(ask, client):
    tokens = ids(ask, STORY)
    about = {"model": "newcomer", "tokens": tokens, "new_words": NEW}
    written = events_of(client.get("/generate", params={**about, "max_new_tokens": 40, "temperature": 9, "seed": 1}))
    labels = ask("/vocabulary", new_words=NEW)["labels"]
    assert set(NEW) < {*labels} and "[new1]" not in labels and "[new4]" in labels
    assert all(data["label"] == labels[data["id"]] for event, data in written if event == "token")
    assert {data["label"] for event, data in written if event == "token"} & {*NEW}
    table = client.get("/export", params={**about, "format": "csv", "name": "blocks.0.hook_resid_post[:, 0]"}).text
    assert "Aliya" in table and "[new1]" not in table
    masked = ask("/masked", model="filler", text="Aliya took the [mask]. [mask] took the 🏀.")
    assert masked["kinds"][str(labels.index("Aliya"))] == ["Aliya", " Aliya", "Aliya"]


@pytest.mark.parametrize("view", ["inside", "attention", "generation"])
def test_a_saved_page_reads_its_prompt_with_the_names_and_another_with_its_own(ask, client, view):
    about = {"model": "newcomer", "text": STORY, "format": "html", "view": view}
    page = client.get("/export", params=about).text
    assert '"new_words":["Aliya","🏀","dojo"]' in page and '["[new1]"," [new1]","[new1]"]' in page


def test_two_texts_that_are_patched_share_their_new_words(ask, client):
    other = STORY.replace("Aliya", "Bo")
    own, theirs = ids(ask, STORY), ids(ask, other, new_words=NEW)
    assert [a != b for a, b in zip(own.split(","), theirs.split(","), strict=True)].count(True) == 1
    found = [
        events_of(client.get("/patching", params={"model": "newcomer", "answer": 3, "against": 4, **texts}))[-1][1]
        for texts in ({"text": STORY, "clean_text": other}, {"tokens": own, "clean_tokens": theirs})
    ]
    assert found[0] == found[1]


def test_another_prompt_is_suggested_that_can_be_read_beside_it(ask):
    suggested = ask("/prompt-pairs", text=STORY)["suggested"]
    assert suggested and suggested != STORY and not ask("/tokens", text=suggested, new_words=NEW)["problem"]


@pytest.mark.parametrize(
    "words", [["Mary"], ["Aliya", "ALIYA"], ["two words"], ["."], ["[mask]"], [*"abcdefghi"], [*map(str, range(80))]]
)
def test_what_is_no_new_word_is_refused_in_a_sentence(client, words):
    response = client.get("/tokens", params={"model": "newcomer", "text": "Mary", "new_words": words})
    assert response.status_code in (400, 422) and response.json()["parameter"] == "new_words", response.text
