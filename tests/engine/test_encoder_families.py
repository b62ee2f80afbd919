"""Tests encoders that fill masked words, of other people, at tiny sizes against transformers."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, processors

from tests.engine.test_families import (
    ACTIVATIONS,
    ALPHABET,
    CONTEXT,
    SMALL,
    TRUE_OR_FALSE,
    VOCABULARY,
    Spread,
    save,
    seeds,
    theirs,
    transformers,
)
from tests.third_party_tokenizers import bert, roberta, trained_bpe, write
from transformer import CheckpointError, fill_masks, load_checkpoint, save_checkpoint
from transformer.checkpoints.exporting import export_pretrained
from transformer.checkpoints.families import FAMILIES
from transformer.checkpoints.pretrained import load_pretrained
from transformer.checkpoints.pretrained_model import config_of
from transformer.inference.tracing import deviations, trace_pass

ENCODERS = [name for name, family in FAMILIES.items() if family.shape == "encoder-only"]
OF_BERT = {
    **{"hidden_act": ACTIVATIONS, "layer_norm_eps": [1e-12, 1e-3], "type_vocab_size": [1, 2, 3]},
    **{"pad_token_id": [None, 0], "intermediate_size": [20, 48], "num_attention_heads": [2, 4]},
}
MIXED = ["sliding_attention", "full_attention", "sliding_attention"]
NEAR = {"rope_type": "default", "rope_theta": 100.0}
YARN = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 12, "rope_theta": 500.0}
OPTIONS = {
    "bert": OF_BERT,
    "roberta": OF_BERT | {"hidden_act": ["gelu"], "pad_token_id": [0, 1, 4]},
    "distilbert": {
        **{"activation": ACTIVATIONS, "sinusoidal_pos_embds": TRUE_OR_FALSE, "pad_token_id": [None, 0]},
        **{"hidden_dim": [20, 48], "n_heads": [2, 4]},
    },
    "modernbert": {
        **{"hidden_activation": ACTIVATIONS, "norm_eps": SMALL, "norm_bias": TRUE_OR_FALSE, "pad_token_id": [None, 3]},
        **{"classifier_bias": TRUE_OR_FALSE, "decoder_bias": TRUE_OR_FALSE, "attention_bias": TRUE_OR_FALSE},
        **{"mlp_bias": TRUE_OR_FALSE, "local_attention": [1, 4, 5, 40], "global_attn_every_n_layers": [2, 3]},
        **{"layer_types": [None, MIXED, ["full_attention"] * 3, None], "intermediate_size": [20, 48]},
        "rope_parameters": [
            *(None, {"full_attention": YARN, "sliding_attention": NEAR}),
            *({"full_attention": NEAR}, {"full_attention": NEAR, "sliding_attention": NEAR}),
        ],
        "num_attention_heads": [2, 4],
    },
}
"""What tells models of a family apart."""


def drawn(family: str, seed: int) -> dict:
    """A configuration of a family as its config.json has it, every flag of it varied."""
    pick = Spread(family, seed, OPTIONS[family]).choice
    own = {name: pick(options) for name, options in OPTIONS[family].items()} | {
        "tie_word_embeddings": pick([*"10"]) > "0"
    }
    if family == "modernbert":
        own["classifier_activation"] = own["hidden_activation"]
        own |= {"cls_token_id": None, "sep_token_id": None}
    sizes = ("dim", "n_layers") if family == "distilbert" else ("hidden_size", "num_hidden_layers")
    common = {"vocab_size": VOCABULARY, "max_position_embeddings": CONTEXT, "bos_token_id": None, "eos_token_id": None}
    return {**common, **dict(zip(sizes, (48, 3), strict=True)), **own}


@pytest.fixture(scope="module", params=[(name, at) for name in ENCODERS for at in range(seeds(OPTIONS[name]))], ids=str)
def both(request, tmp_path_factory):
    """(theirs, ours, inputs of ours): tokens, and segments where there are some."""
    family, seed = request.param
    folder = tmp_path_factory.mktemp(family)
    fields = drawn(family, seed)
    model = theirs(family, fields, seed)
    save(folder, model, ["[MASK]"])
    ours = load_pretrained(folder)
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(VOCABULARY, (2, 14), generator=generator)
    if ours.model.config.pad_token_id is not None:  # whose positions don't count padding
        tokens[tokens == ours.model.config.pad_token_id] = 9
    segments = ours.model.config.n_segments
    return model, ours, [tokens, *([torch.randint(segments, (2, 14), generator=generator)] if segments else [])]


def logits_of(model, tokens, segments=None, **more) -> torch.Tensor:
    return model(tokens, **({} if segments is None else {"token_type_ids": segments}), **more).logits


@torch.no_grad()
def test_logits_and_patterns_are_those_of_transformers(both):
    model, ours, inputs = both
    logits, cache = ours.model.run_with_cache(*inputs, names_filter=lambda name: name.endswith("hook_pattern"))
    for found in (logits, ours.model(*inputs)):  # step by step, and in one call
        torch.testing.assert_close(found, logits_of(model, *inputs), atol=1e-4, rtol=0)
    patterns = model(inputs[0], **dict(zip(["token_type_ids"], inputs[1:], strict=False)), output_attentions=True)
    assert len(patterns.attentions) == len(cache) == 3
    for layer, pattern in enumerate(patterns.attentions):
        torch.testing.assert_close(cache["pattern", layer], pattern, atol=1e-5, rtol=0)


@torch.no_grad()
def test_every_tensor_is_what_its_equation_gives(both):
    _, ours, inputs = both
    segments = inputs[1][0] if len(inputs) > 1 else ()
    for each in deviations(trace_pass(ours.model, inputs[0][0], segments=segments)):
        assert each.largest <= 1e-5 * max(each.magnitude, 1.0), each


@torch.no_grad()
def test_padding_is_hidden_by_the_attention_mask_on_either_side(both):
    model, ours, inputs = both
    places = torch.arange(14).repeat(2, 1)
    for mask in (places < 9, places >= 5):
        tokens, *segments = inputs
        pad = ours.model.config.pad_token_id
        tokens = torch.where(mask, tokens, 0 if pad is None else pad)
        starts = (places - (~mask).sum(-1, keepdim=True) * (mask[:, :1] == 0)).clamp(min=0)
        own = {} if pad is not None else {"position_ids": starts}  # which its padding would tell it
        expected = logits_of(model, tokens, *segments, attention_mask=mask.long(), **own)
        found = ours.model(tokens, *segments, attention_mask=mask.long())
        torch.testing.assert_close(found[mask], expected[mask], atol=1e-4, rtol=0)


@torch.no_grad()
def test_written_again_both_open_it_with_equal_logits(both, tmp_path):
    model, ours, inputs = both
    save_checkpoint(tmp_path / "kept", ours)
    kept = load_checkpoint(tmp_path / "kept")
    assert kept.card == ours.card and torch.equal(kept.model(*inputs), ours.model(*inputs))
    assert export_pretrained(tmp_path / "out", kept).architecture == type(model).__name__
    again, back = type(model).from_pretrained(tmp_path / "out"), load_pretrained(tmp_path / "out")
    torch.testing.assert_close(logits_of(again, *inputs), ours.model(*inputs), atol=1e-4, rtol=0)
    torch.testing.assert_close(back.model(*inputs), ours.model(*inputs), atol=1e-5, rtol=0)
    assert (back.card.mask_token_id, back.card.parameters) == (len(ALPHABET), ours.card.parameters)


SMALL_ONE = {"vocab_size": VOCABULARY, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}
SMALL_ONE |= {"intermediate_size": 20, "max_position_embeddings": CONTEXT, "pad_token_id": 0, "use_cache": True}
POOLER = {"pooler_fc_size": 768, "pooler_num_attention_heads": 12, "pooler_type": "first_token_transform"}
AS_SHARED = {
    "bert": {**SMALL_ONE, **POOLER, "directionality": "bidi", "position_embedding_type": "absolute"},
    "roberta": {**SMALL_ONE, "pad_token_id": 1, "type_vocab_size": 1, "layer_norm_eps": 1e-5, "eos_token_id": 2},
    "distilbert": {
        **{"vocab_size": VOCABULARY, "dim": 48, "n_layers": 3, "n_heads": 4, "hidden_dim": 20, "pad_token_id": 0},
        **{"max_position_embeddings": CONTEXT, "tie_weights_": True, "qa_dropout": 0.1, "seq_classif_dropout": 0.2},
    },
    "modernbert": {
        **{**SMALL_ONE, "layer_norm_eps": 1e-5, "position_embedding_type": "absolute", "local_attention": 6},
        **{"global_rope_theta": 500.0, "local_rope_theta": 100.0, "classifier_pooling": "mean", "norm_bias": False},
        **{"initializer_cutoff_factor": 2.0, "reference_compile": True, "sparse_prediction": False},
        **{"deterministic_flash_attn": False, "cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2},
    },
}
"""What files on the Hub say: older spellings, and fields that change nothing."""


@pytest.mark.parametrize("family", ENCODERS)
@torch.no_grad()
def test_files_as_people_share_them_are_read_as_transformers_reads_them(family, tmp_path):
    model = theirs(family, dict(AS_SHARED[family]), 3)
    save(tmp_path, model, ["<mask>"])
    write(tmp_path, "config.json", {**AS_SHARED[family], "model_type": family, "architectures": [type(model).__name__]})
    tokens = torch.arange(5, 19)[None]
    found = load_pretrained(tmp_path)
    torch.testing.assert_close(found.model(tokens), model(tokens).logits, atol=1e-4, rtol=0)
    assert found.card.mask_token_id == len(ALPHABET) and found.card.stop_tokens == ()
    assert found.card.examples[0] == "The capital of France is <mask>."


@torch.no_grad()
def test_older_names_and_heads_of_other_tasks_are_read_past(tmp_path):
    fields = AS_SHARED["bert"]
    torch.manual_seed(0)
    model = transformers.BertForPreTraining(transformers.BertConfig(**fields)).eval()
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
    torch.testing.assert_close(load_pretrained(tmp_path).model(tokens), expected, atol=1e-4, rtol=0)
    bias = weights["cls.predictions.bias"]
    save_file({**weights, "cls.predictions.decoder.bias": bias + 1}, path, {"format": "pt"})  # the decoder's own counts
    torch.testing.assert_close(load_pretrained(tmp_path).model(tokens), expected + 1, atol=1e-4, rtol=0)
    del weights["cls.predictions.bias"]
    save_file({**weights, "cls.predictions.decoder.bias": bias}, path, {"format": "pt"})
    torch.testing.assert_close(load_pretrained(tmp_path).model(tokens), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    "family, fields, words",
    [
        ("bert", {"is_decoder": True}, "is_decoder, by which tokens see none that follow"),
        ("bert", {"add_cross_attention": True}, "a decoder beside an encoder"),
        ("bert", {"position_embedding_type": "relative_key"}, "is 'relative_key'; known is 'absolute'"),
        ("bert", {"is_causal": True}, "else than false: its tokens don't see what follows"),
        *(("bert", {"type_vocab_size": 0}, "type_vocab_size is 0"), ("bert", {"embedding_size": 9}, "embedding_size")),
        *(("bert", {"hidden_act": "tanh"}, "known are relu"), ("distilbert", {"activation": "mish"}, "known are relu")),
        ("roberta", {"hidden_act": "relu"}, "its head has gelu, whatever hidden_act says"),
        ("roberta", {"pad_token_id": -1}, "pad_token_id is -1, where a token's id should be"),
        ("roberta", {"max_position_embeddings": 2}, "its 2 max_position_embeddings leave none"),
        ("modernbert", {"classifier_activation": "relu"}, "classifier_activation isn't its hidden_activation"),
        ("modernbert", {"rope_scaling": {"type": "linear", "factor": 2.0}}, "layers with a window, too"),
        ("modernbert", {"rope_theta": 5.0}, "which models of this type don't read"),
        *(("modernbert", {"rope_parameters": said}, "don't name the kinds of layers") for said in (7, {"factor": 2.0})),
        ("modernbert", {"rope_parameters": {"sliding_attention": YARN}}, "in its sliding_attention layers"),
        ("modernbert", {"rope_parameters": {"full_attention": {"partial_rotary_factor": 0.5}}}, "a part of each head"),
    ],
)
def test_what_can_t_be_computed_is_refused(family, fields, words):
    with pytest.raises(CheckpointError, match=words):
        config_of(FAMILIES[family], {**AS_SHARED[family], **fields})


def test_a_model_that_fills_no_masked_words_is_refused(tmp_path):
    fields = AS_SHARED["bert"]
    save(tmp_path, theirs("bert", dict(fields), 3))
    with pytest.raises(CheckpointError, match="names no token that stands for a masked word"):
        load_pretrained(tmp_path)
    save(tmp_path, transformers.BertModel(transformers.BertConfig(**fields)), ["[MASK]"])
    with pytest.raises(CheckpointError, match=r"weights of cls.predictions.* are missing"):
        load_pretrained(tmp_path)
    save(tmp_path, transformers.BertForTokenClassification(transformers.BertConfig(**fields)), ["[MASK]"])
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
    fields = AS_SHARED[family] | {"vocab_size": 620, "max_position_embeddings": 64}
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
    torch.testing.assert_close(step.logits, expected, atol=1e-4, rtol=0)
    assert step.token_id == expected.argmax()
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    batch = again(texts, return_tensors="pt", padding=True)
    assert (again.mask_token, again.pad_token) == (mask, words.pad_token)
    assert ("token_type_ids" in batch) == (ours.model.config.n_segments > 1)
    expected = type(model).from_pretrained(tmp_path / "out")(**batch).logits
    seen = batch["attention_mask"].bool()
    torch.testing.assert_close(ours(texts)[seen], expected[seen], atol=1e-4, rtol=0)
    if ours.model.config.n_segments > 1:
        pair = again("The objects", f"a name is {mask}.", return_tensors="pt")
        assert 1 in pair["token_type_ids"]
        for found in (ours, load_checkpoint(tmp_path / "kept"), load_pretrained(tmp_path / "out")):
            text = f"The objects {words.sep_token} a name is {mask}."
            assert found.tokenizer.encode(text) == pair["input_ids"][0].tolist()
            torch.testing.assert_close(found(text), model(**pair).logits, atol=1e-4, rtol=0)
