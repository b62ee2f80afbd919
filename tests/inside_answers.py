"""Records a shipped model's pass and the API's answers, for tests of the page Inside."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import torch

from tests.inside_outlines import labelled_outline
from transformer import Recording, load_checkpoint
from transformer.inference.pass_outline import array_of, tensors_of
from transformer.inference.pass_recording import circuit_parts
from transformer.inference.residual_stream import direct_logit_attribution
from transformer.inference.tracing import deviations, trace_pass

CHECKPOINTS = Path(__file__).resolve().parents[1] / "checkpoints"


class Inside:
    """prompt: what the model's encoder reads, or what its decoder begins with; written: how many tokens it adds."""

    def __init__(self, name: str, prompt: str, written: int = 0) -> None:
        checkpoint = load_checkpoint(CHECKPOINTS / name)
        model, config = checkpoint.model.eval(), checkpoint.model.config
        tokens, source = list(checkpoint.tokenizer.encode(prompt)), []
        if config.architecture == "encoder-decoder":
            tokens, source = [checkpoint.card.start_token_id], tokens
        for _ in range(written):
            logits = model(*(torch.tensor([each]) for each in (source, tokens) if each))
            tokens.append(int(logits[0, -1].argmax()))
        self.found = trace_pass(model, tokens, source)
        self.infos = tensors_of(config, len(tokens), len(source))
        self.outline = labelled_outline(self.found, checkpoint, name)

    def parts(self, wanted: list[list]) -> Recording:
        """What is asked for, as the page's feed has it."""
        tensors, metadata = {}, {}
        for kind, *what in wanted:
            if kind == "tensor":
                tensors[what[0]] = array_of(self.found, self.infos[what[0]])
            elif kind == "slice":
                name, head = what
                info = self.infos[name]
                tensors[f"{name}[{head}]"] = array_of(self.found, info).take(head, info.dims.index("head"))
            elif kind == "attribution":
                pos, token = what
                given = direct_logit_attribution(self.found, [token] * len(self.found.tokens))
                tensors[f"attribution[{pos}, {token}]"] = given.values[:, pos].float().numpy()
                metadata["attribution"] = {"names": list(given.names)}
            elif kind == "circuit":
                read = [*self.found.tokens.tolist(), *self.found.source.tolist()]
                tensors |= circuit_parts(self.found, *what, read)
            else:
                metadata["checks"] = [dataclasses.asdict(each) for each in deviations(self.found)]
        return Recording(tensors, metadata)
