"""Tests what only encoder–decoders of other people have, against transformers: texts into texts, and their tables."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.test_families import close, written
from tests.engine.test_family_files import SIZES
from tests.helpers import tiny_config
from tests.pretrained_models import save, theirs, transformers
from tests.third_party_tokenizers import LAYOUTS
from transformer import CheckpointError, load_checkpoint
from transformer.__main__ import main
from transformer.checkpoints.pretrained import load_pretrained
from transformer.model.positions import relative_buckets


@given(st.sampled_from([8, 16, 32]), st.integers(33, 200), st.integers(1, 60), st.integers(0, 200), st.booleans())
def test_distances_are_sorted_into_the_kinds_of_t5(buckets, distance, query, earlier, causal):
    config = tiny_config(positions="relative", relative_buckets=buckets, relative_distance=distance)
    key = query + earlier
    ahead = torch.arange(key) - torch.arange(earlier, key)[:, None]
    kind_of = transformers.models.t5.modeling_t5.T5Attention._relative_position_bucket
    expected = kind_of(ahead, bidirectional=not causal, num_buckets=buckets, max_distance=distance)
    assert torch.equal(relative_buckets(config, query, key, causal), expected)


def test_a_decoder_must_have_something_to_begin_with(tmp_path):
    save(tmp_path, theirs("t5", {**SIZES["t5"], "decoder_start_token_id": None}, 3))
    with pytest.raises(CheckpointError, match="lacks decoder_start_token_id"):
        load_pretrained(tmp_path)


@pytest.mark.parametrize(
    "family, layout",
    [
        *(("t5", "T5, spiece.model"), ("t5", "T5, tokenizer.json"), ("bart", "BART, vocab.json")),
        *(("bart", "BART, tokenizer.json"), ("marian", "Marian, source.spm")),
    ],
)
@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
@torch.no_grad()
def test_a_text_becomes_the_text_that_transformers_makes_of_it(family, layout, tmp_path, capsys):
    """Read, imported, exported, and by the commands."""
    files = tmp_path / "theirs"
    files.mkdir()
    LAYOUTS[layout](files)
    words = transformers.AutoTokenizer.from_pretrained(files)
    pad, end = words.pad_token_id, words.eos_token_id
    starts = {"decoder_start_token_id": end if family == "bart" else pad, "eos_token_id": end, "pad_token_id": pad}
    more = {"vocab_size": len(words), "bos_token_id": None, "forced_bos_token_id": None, "forced_eos_token_id": None}
    theirs(family, {**SIZES[family], **starts, **more, "num_beams": 1}, 0).save_pretrained(files)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(files)
    texts = ["The names of the objects", "It is."]
    batch = words(texts, return_tensors="pt", padding=True)
    batch.pop("token_type_ids", None)
    expected = model.generate(**batch, do_sample=False, num_beams=1, max_new_tokens=8)
    wanted = [words.decode(ids, skip_special_tokens=True) for ids in expected]
    ours = ["--checkpoints", str(tmp_path / "ours")]
    main([*ours, "import", str(files), "--name", "x"])
    main([*ours, "export", "x", str(tmp_path / "out")])
    said = capsys.readouterr().out
    assert "2 + " in said and type(model).__name__ in said
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    kept = load_checkpoint(tmp_path / "ours" / "x")
    for found in (load_pretrained(files), kept, load_pretrained(tmp_path / "out")):
        for text, want in zip(texts, wanted, strict=True):
            ids = found.tokenizer.encode(text)
            assert ids == words(text)["input_ids"] == again(text)["input_ids"] and ids[-1] == end
            assert found.tokenizer.decode(written(found, ids, 8)) == want
        close(found(texts), model(**batch, decoder_input_ids=expected[:, :1]).logits)
    main([*ours, "generate", "x", texts[0], "--temperature", "0", "--tokens", "8"])
    assert capsys.readouterr().out.rstrip("\n") == wanted[0]
