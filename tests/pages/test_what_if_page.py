"""Tests what the page What if asks the API for, and that its lines of Python compute the same."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from pages.ui.models import library
from tests import app_driver as app
from tests.app_driver import ids, link_of, start
from tests.frontend_calls import frontend
from tests.helpers import tiny_model
from tests.tiny_models import save_encoder, save_tiny, save_translator
from transformer import (
    Checkpoint,
    ModelCard,
    Recording,
    Tokenizer,
    fill_masks,
    from_code,
    list_checkpoints,
    save_checkpoint,
)

pytestmark = pytest.mark.usefixtures("folder")

PROMPT = "To be, or not"
CODE = "scale~blocks.0.attn.hook_z~1~~0.0"
TRANSLATOR = {"model": "translator", "prompt": "forty-two", "changes": "scale~decoder.blocks.0.hook_mlp_out~~~0.0"}
ENCODER = {"model": "encoder", "prompt": "To [mask]e, or [mask]", "changes": "scale~blocks.1.hook_mlp_out~~~0.0"}
LATE = "scale~blocks.0.hook_mlp_out~~20~0.0!scale~blocks.1.hook_mlp_out~~~0.0"
LONG = {"prompt": "To be, or not to be, that is", "changes": LATE}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    save_tiny(folder, "shakespeare", title="Shakespeare", group="Texts", seed=1)
    save_translator(folder)
    save_encoder(folder)
    return folder


def about(**link):
    """What the view is told."""
    found = app.shown(start("What if", **link))
    assert not found["problem"]
    return found["about"]


def asked(path, side, **more):
    """The API's answer to what the view asks of a side."""
    given = {name: ",".join(map(str, side[name])) or None for name in ("tokens", "source")}
    given |= {"model": side["model"], "changes": side["changes"], "begin": side["begin"] or None, **more}
    found = app.api().get(f"/{path}", params={name: value for name, value in given.items() if value is not None})
    assert found.status_code == 200, found.text
    return found


def result(path, side, **more):
    return json.loads(asked(path, side, **more).text.rpartition("data: ")[2])


def described(name):
    return {"name": name, "isOwn": False, **app.api().get(f"/models/{name}").json()}


def run(lines, folder: Path):
    """Run lines of Python that the page shows; returns their names."""
    names: dict = {}
    exec(lines.replace("checkpoints/", f"{folder}/"), names)
    return names


SAYS = {
    "decoder-only": {"prompt": PROMPT, "changes": f"{CODE}!without~scale~", "top_k": 9, "seed": 7, "temperature": 1.2},
    "encoder–decoder": {**TRANSLATOR, "place": 3, "temperature": 0},
    "encoder-only": ENCODER,
}


@pytest.mark.parametrize("link", SAYS.values(), ids=SAYS)
def test_the_lines_of_python_print_what_both_models_predict_and_write(link, folder, capsys):
    told, name = about(**link), link.get("model", "shakespeare")
    side, tokenizer = told["side"], library.tokenizer(name)
    (lines,) = frontend("what_if/python_lines.js", "linesOfAblation", told, described(name), None)
    run(lines, folder)
    printed = capsys.readouterr().out
    changes = [from_code(code) for code in link["changes"].split("!")]
    for changed in ((), changes):
        logits = app.logits(name, side["tokens"], *changed, source=side["source"])[side["position"]].double()
        likeliest = logits.softmax(-1).topk(2)
        for token, probability in zip(tokenizer.labels(likeliest.indices.tolist()), likeliest.values, strict=True):
            assert repr(token) in printed and f"{float(probability):.9f}"[:6] in printed
        if name == "encoder":
            mask = library.model(name).card.mask_token_id
            filled = fill_masks(library.model(name).model, side["tokens"], mask, interventions=changed)
            assert str([(step.position, tokenizer.label(step.token_id)) for step in filled]) in printed
            continue
        sampling = {each: link[each] for each in ("top_k", "seed", "temperature") if each in link}
        source = {"source": tuple(side["source"])} if side["source"] else {}
        count = min(60, told["room"] or 60)
        steps = app.generated(name, tuple(told["before"]), count, interventions=changed, **sampling, **source)
        assert tokenizer.decode([step.token_id for step in steps]) in printed


MAPS = [
    *({"prompt": PROMPT, "effect": effect} for effect in ("probability", "loss", "logit")),
    *({**LONG, "effect": effect} for effect in ("probability", "loss", "logit")),
    {"prompt": PROMPT, "effect": "logit", "token": 40},
    {**TRANSLATOR, "place": 3, "effect": "logit"},
    {**TRANSLATOR, "effect": "loss"},
    {**ENCODER, "effect": "probability"},
]


@pytest.mark.parametrize("link", MAPS, ids=str)
def test_the_lines_of_the_map_print_what_the_api_answers(link, folder, capsys):
    told, effect = about(**link), link["effect"]
    side, name = told["side"], link.get("model", "shakespeare")
    ablated = result("ablation", side, position=side["position"], token=link.get("token"))
    mapped = {"effect": effect, "token": ablated["token"]}
    _, lines = frontend("what_if/python_lines.js", "linesOfAblation", told, described(name), mapped)
    run(lines, folder)
    printed = np.array([float(line.rpartition(" ")[2]) for line in capsys.readouterr().out.splitlines()])
    points = np.subtract(ablated["without"], ablated["with"]) * 100
    shown = np.array(points if effect == "probability" else ablated[effect])
    codes = {code for code in (side["changes"] or "").split("!")}
    parts = [(part["point"], "" if part["head"] is None else part["head"]) for part in ablated["parts"]]
    free = [at for at, (point, head) in enumerate(parts) if f"scale~{point}~{head}~~0.0" not in codes]
    np.testing.assert_allclose(shown[free], printed[free], rtol=1e-4, atol=1e-5)
    assert len(parts) - len(free) == bool(link.get("changes"))
    assert np.allclose(np.delete(printed, free), 0, atol=1e-6)
    assert np.delete(shown, free).all(), "what is ablated can be brought back"


PAIRS = {
    "decoder-only": {"prompt": PROMPT, "other_prompt": "To be, ox not"},
    "changed": {"prompt": PROMPT, "other_prompt": "To be, ox not", "changes": CODE},
    "encoder–decoder": {"model": "translator", "prompt": "two hundred and five", "other_prompt": "two hundred and six"},
    "encoder-only": {"model": "encoder", "prompt": "To [mask]e, or", "other_prompt": "To [mask]e, ox"},
}


@pytest.mark.parametrize("link", PAIRS.values(), ids=PAIRS)
def test_the_lines_of_patching_compute_what_the_api_answers(link, folder, capsys):
    told, name = about(question="patching", **link), link.get("model", "shakespeare")
    own, other = told["sides"]
    answers = ids("K", name)[0] if name == "shakespeare" else 4, 7
    clean = {f"clean_{each}": ",".join(map(str, other[each])) or None for each in ("tokens", "source")}
    found = result("patching", own, **clean, against=answers[0], answer=answers[1], stack=told["stacks"][0])
    (lines,) = frontend("what_if/python_lines.js", "linesOfPatching", told, described(name), answers)
    patched = run(lines, folder)["patched"]
    np.testing.assert_allclose(found["restored"], patched.restored.numpy(), atol=1e-3)
    differs = [float(a != b) for a, b in zip(*(side["source"] or side["tokens"] for side in (own, other)), strict=True)]
    assert np.allclose(found["restored"][0][0], differs, atol=1e-4), "all of the difference enters where it is"
    assert "stream tensor" in capsys.readouterr().out


@pytest.mark.parametrize("beside", ["prompts", "models", "changes"])
def test_the_lines_of_a_comparison_print_what_both_sides_predict(beside, folder, capsys):
    save_tiny(folder, "other", title="Other", group="Texts", seed=2, n_layers=3)
    told = about(question="comparison", beside=beside, prompt=PROMPT, other_prompt="To be, ox not", changes=CODE)
    models = [described(side["model"]) for side in told["sides"]]
    (lines,) = frontend("what_if/python_lines.js", "linesOfComparison", told["sides"], models)
    run(lines, folder)
    printed = capsys.readouterr().out
    for side in told["sides"]:
        lens = Recording.from_bytes(asked("lens", side, position=side["position"], of="4,7").content).tensors
        assert f"tensor({lens['lens'][:, 0].tolist()})" in printed
        logits = app.logits(
            side["model"], side["tokens"], *(from_code(code) for code in (side["changes"] or "").split("!") if code)
        )[side["position"]]
        np.testing.assert_allclose(lens["lens.of"][-1], logits.double().softmax(-1)[[4, 7]], atol=1e-6)


# Prompts that are suggested, and names


def suggested(name, text):
    return app.api().get("/prompt-pairs", params={"model": name, "text": text}).json()


def test_another_prompt_is_suggested_of_as_many_tokens():
    other = suggested("shakespeare", PROMPT)["suggested"]
    assert len(other) == len(PROMPT) and other != PROMPT
    assert about(question="patching", prompt=PROMPT)["sides"][1]["tokens"] == list(ids(other))
    masked = suggested("encoder", "To [mask]e, or")["suggested"]
    assert masked.count("[mask]") == 1 and masked.index("[mask]") == 3


def test_a_word_of_several_letters_takes_the_place_of_one_that_begins_as_it_does(folder):
    """With a space before it, and a capital, or without."""
    tokenizer = Tokenizer.of_bytes("Emma and Jane saw Mary, and Mary saw Emma. " * 9, 256 + 30)
    model = tiny_model(vocab_size=tokenizer.vocab_size, context_length=16)
    save_checkpoint(folder / "novel", Checkpoint(model, tokenizer, ModelCard(title="Novel")))
    for text in ("Emma and Jane saw Mary.", "Jane saw Mary and Emma,", " and Mary"):
        other = suggested("novel", text)["suggested"]
        outlines = [re.sub("[a-z]+", "a", re.sub("[A-Z]", "A", each)) for each in (text, other)]
        assert outlines[0] == outlines[1] and text != other


def test_every_shipped_model_with_attention_has_prompts_that_tell_something(monkeypatch):
    """Each pair is of one length, and what is likeliest after the one isn't after the other, or moves far at least."""
    app.use(monkeypatch, app.ROOT / "checkpoints")
    for entry in list_checkpoints(app.ROOT / "checkpoints"):
        pairs = [each["prompts"] for each in suggested(entry.name, "")["pairs"]]
        assert len(pairs) >= 2
        if not entry.config.n_layers or entry.config.architecture == "encoder-decoder":
            continue
        checkpoint, moved = library.model(entry.name), []
        for texts in pairs:
            one, other = (tuple(checkpoint.tokenizer.encode(text)) for text in texts)
            assert len(one) == len(other) <= entry.config.context_length and one != other
            place = checkpoint.predicted_position(one)
            own, new = (app.logits(entry.name, tokens)[place].double().numpy() for tokens in (one, other))
            change = (new - own) - (new - own)[own.argmax()]
            moved.append(float(change[new.argmax()] if own.argmax() != new.argmax() else change.max()))
        assert min(moved) > 0.3 and max(moved) > 3, (entry.name, moved)


def test_a_vocabulary_has_what_every_token_is_called():
    labels = app.api().get("/vocabulary", params={"model": "encoder"}).json()["labels"]
    tokenizer = library.tokenizer("encoder")
    assert labels == tokenizer.labels(range(tokenizer.vocab_size))


def test_what_a_link_asks_is_in_the_link_again():
    link = {"question": "comparison", "beside": "models", "other_model": "encoder", "effect": "loss", "token": "7"}
    assert link_of(start("What if", **link)).items() >= link.items()
