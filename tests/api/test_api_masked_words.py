"""Tests what the API says of masked words, and what it refuses."""

import torch

from tests.helpers import close

TEXT = "To [mask]e or[mask]"


def test_what_is_expected_at_each_mask_is_what_the_model_says_there(client, library):
    checkpoint = library.open("encoder").checkpoint
    mask = checkpoint.card.mask_token_id
    tokens = checkpoint.tokenizer.encode(TEXT)
    with torch.no_grad():
        logits = checkpoint.model(torch.tensor([tokens]))[0].double()
    logits[:, mask] = -torch.inf
    answer = client.get("/masked", params={"text": TEXT, "model": "encoder"}).json()
    assert [found["position"] for found in answer["masks"]] == [3, 8]
    for found in answer["masks"]:
        best = logits[found["position"]].softmax(-1).sort(descending=True)
        assert [candidate["id"] for candidate in found["candidates"]] == best.indices[:10].tolist()
        probabilities = [candidate["probability"] for candidate in found["candidates"]]
        close(torch.tensor(probabilities, dtype=torch.float64), best.values[:10])
    assert answer["kinds"][str(mask)][0] == "[mask]"
    assert client.get("/masked", params={"text": "To be", "model": "encoder"}).json()["masks"] == []


def test_each_kind_of_model_is_asked_what_it_does(client):
    refused = client.get("/masked", params={"model": "rotary", "text": "To be"})
    assert refused.status_code == 400 and "fills no masks" in refused.json()["error"]
    refused = client.get("/generate", params={"model": "encoder", "text": TEXT})
    assert refused.status_code == 400 and "fill" in refused.json()["error"]
