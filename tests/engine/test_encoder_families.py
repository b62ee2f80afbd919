"""Tests what only encoders of other people have, against transformers: masked words, and older files."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, processors

from tests.engine.test_families import close
from tests.engine.test_family_files import SIZES
from tests.pretrained_models import CONTEXT, save, theirs, transformers
from tests.third_party_tokenizers import bert, roberta, trained_bpe, write
from transformer import CheckpointError, fill_masks, load_checkpoint, save_checkpoint
from transformer.checkpoints.exporting import export_pretrained
from transformer.checkpoints.pretrained import load_pretrained


@torch.no_grad()
def test_older_names_and_heads_of_other_tasks_are_read_past(tmp_path):
    torch.manual_seed(0)
    model = transformers.BertForPreTraining(transformers.BertConfig(**SIZES["bert"])).eval()
    model.cls.predictions.bias.normal_()
    save(tmp_path, model, ["[MASK]"])
    path, tokens = tmp_path / "model.safetensors", torch.arange(14)[None]
    weights = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in load_file(path).items()
    }
    weights["bert.embeddings.position_ids"] = torch.arange(CONTEXT)[None]
    save_file(weights, path, {"format": "pt"})
    expected = model(tokens).prediction_logits
    close(load_pretrained(tmp_path).model(tokens), expected)
    bias = weights["cls.predictions.bias"]
    save_file({**weights, "cls.predictions.decoder.bias": bias + 1}, path, {"format": "pt"})  # the decoder's own counts
    close(load_pretrained(tmp_path).model(tokens), expected + 1)
    del weights["cls.predictions.bias"]
    save_file({**weights, "cls.predictions.decoder.bias": bias}, path, {"format": "pt"})
    close(load_pretrained(tmp_path).model(tokens), expected)


def test_a_model_that_fills_no_masked_words_is_refused(tmp_path):
    save(tmp_path, theirs("bert", dict(SIZES["bert"]), 3), [])
    with pytest.raises(CheckpointError, match="names no token that stands for a masked word"):
        load_pretrained(tmp_path)
    save(tmp_path, transformers.BertModel(transformers.BertConfig(**SIZES["bert"])), ["[MASK]"])
    with pytest.raises(CheckpointError, match=r"weights of cls.predictions.* are missing"):
        load_pretrained(tmp_path)
    save(tmp_path, transformers.BertForTokenClassification(transformers.BertConfig(**SIZES["bert"])), ["[MASK]"])
    with pytest.raises(CheckpointError, match="is a BertForTokenClassification; of this family, a BertForMaskedLM"):
        load_pretrained(tmp_path)


def byte_level(folder) -> None:
    """As ModernBERT has it, in one file; its kind names a class that isn't its own, which counts for nothing."""
    backend = trained_bpe(["[UNK]", "[CLS]", "[SEP]", "[PAD]"])
    backend.add_special_tokens([AddedToken("[MASK]", lstrip=True, normalized=False, special=True)])
    ends = [(name, backend.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    backend.save(str(folder / "tokenizer.json"))
    named = {f"{name}_token": f"[{name.upper()}]" for name in ("unk", "cls", "sep", "pad", "mask")}
    write(folder, "tokenizer_config.json", {"tokenizer_class": "GPTNeoXTokenizer", **named})


@pytest.mark.parametrize(
    "family, tokenizer", [("bert", bert), ("roberta", roberta), ("distilbert", bert), ("modernbert", byte_level)]
)
@torch.no_grad()
def test_masked_words_are_filled_as_transformers_fills_them(family, tokenizer, tmp_path):
    tokenizer(tmp_path)
    (tmp_path / "config.json").unlink(missing_ok=True)
    fields = SIZES[family] | {"vocab_size": 620, "max_position_embeddings": 64}
    model = theirs(family, dict(fields), 0)
    model.save_pretrained(tmp_path)
    words, ours = transformers.AutoTokenizer.from_pretrained(tmp_path), load_pretrained(tmp_path)
    export_pretrained(tmp_path / "out", ours)
    save_checkpoint(tmp_path / "kept", ours)
    mask = words.mask_token
    assert ours.card.mask_token_id == words.mask_token_id
    texts = [f"The {mask} of the objects", f"a name is {mask}.", "It is"]
    for found in (ours, load_checkpoint(tmp_path / "kept"), load_pretrained(tmp_path / "out")):
        assert found.card.mask_token_id == words.mask_token_id
        assert found.tokenizer.around == ([words.cls_token_id], [words.sep_token_id])
        for text in texts:
            assert found.tokenizer.encode(text) == words(text)["input_ids"]
    ids = words(texts[0])["input_ids"]
    expected = model(torch.tensor([ids])).logits[0, ids.index(words.mask_token_id)]
    expected[words.mask_token_id] = -torch.inf
    (step,) = fill_masks(ours.model, ids, ours.card.mask_token_id)
    close(step.logits, expected)
    assert step.token_id == expected.argmax()
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    batch = again(texts, return_tensors="pt", padding=True)
    assert (again.mask_token, again.pad_token) == (mask, words.pad_token)
    assert ("token_type_ids" in batch) == (ours.model.config.n_segments > 1)
    expected = type(model).from_pretrained(tmp_path / "out")(**batch).logits
    seen = batch["attention_mask"].bool()
    close(ours(texts)[seen], expected[seen])
    if ours.model.config.n_segments > 1:
        pair = again("The objects", f"a name is {mask}.", return_tensors="pt")
        assert 1 in pair["token_type_ids"]
        for found in (ours, load_checkpoint(tmp_path / "kept"), load_pretrained(tmp_path / "out")):
            text = f"The objects {words.sep_token} a name is {mask}."
            assert found.tokenizer.encode(text) == pair["input_ids"][0].tolist()
            close(found(text), model(**pair).logits)
