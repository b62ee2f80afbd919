"""Tests a model on another device: everything is computed there, and no tensor mixes with the CPU's."""

import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_map

import transformer
from tests.helpers import tiny_encoder_decoder, tiny_model
from transformer.inference.ablation import ablated_in_batches
from transformer.inference.batched_decoding import BatchedDecoding
from transformer.inference.generation import DecodeState, write_greedily
from transformer.inference.logits import logits_in_pieces, losses_in_pieces, stream_of
from transformer.inference.pass_outline import lens_at, outline_of_text
from transformer.inference.tracing import deviations_of_text
from transformer.model import modes

ELSEWHERE = torch.device("meta")
TEXT, OTHER, SOURCE = [1, 2, 3, 4, 0, 5], [1, 2, 6, 4, 0, 5], [4, 5, 6, 0]


class There(Tensor):
    """A tensor that says it is on the device. Its numbers are in the CPU's memory."""

    device = property(lambda self: ELSEWHERE)


class Device(TorchFunctionMode):
    """Within it there is such a device: what is made there stays there, until it is moved."""

    MOVING = (Tensor.to, Tensor.cpu, Tensor.copy_, Tensor.__setitem__, Tensor.numpy, Tensor.tolist, Tensor.item)
    FLOATS = (Tensor.double,)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        tensors = [each for each in tree_flatten((args, kwargs))[0] if isinstance(each, Tensor)]
        is_there = [isinstance(each, There) for each in tensors]
        if function in self.FLOATS and any(is_there):
            raise TypeError("This device has no float64.")  # as Apple's
        if function not in self.MOVING and any(is_there):
            away = [each for each, there in zip(tensors, is_there, strict=True) if not there and each.dim()]
            if away:
                raise RuntimeError(f"{function.__name__}: {away[0].shape} is on the CPU, and others aren't.")
        stays = any(is_there)
        if kwargs.get("device") is not None:
            stays = torch.device(kwargs.pop("device")) == ELSEWHERE
        elif function is Tensor.to and len(args) > 1 and isinstance(args[1], torch.device | str):
            stays, args = torch.device(args[1]) == ELSEWHERE, (args[0], *args[2:])
            if len(args) == 1 and not kwargs:
                return as_there(args[0]) if stays else as_here(args[0])
        elif function in (Tensor.cpu, Tensor.numpy, Tensor.tolist, Tensor.item):
            stays = False
        here = tree_map(lambda each: as_here(each) if isinstance(each, Tensor) else each, (args, kwargs))
        with torch._C.DisableTorchFunctionSubclass():
            found = function(*here[0], **here[1])
        return tree_map(lambda each: as_there(each) if stays and isinstance(each, Tensor) else each, found)


def as_there(tensor: Tensor) -> Tensor:
    return tensor if isinstance(tensor, There) else tensor.as_subclass(There)


def as_here(tensor: Tensor) -> Tensor:
    return tensor.as_subclass(Tensor) if isinstance(tensor, There) else tensor


GROUPED = {"positions": "rotary", "n_heads": 4, "n_kv_heads": 2, "d_model": 16, "norm_kind": "rms"}


@pytest.fixture(params=[{"positions": "sinusoidal"}, {"positions": "learned"}, GROUPED], ids=lambda f: f["positions"])
def there(request, monkeypatch):
    """A model that is on the device, and what a source adds to the arguments of whatever is asked of it."""
    translates = request.param["positions"] == "learned"
    model = (tiny_encoder_decoder if translates else tiny_model)(pad_token_id=0, n_layers=1, **request.param)
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                module._parameters[name] = nn.Parameter(parameter.detach().as_subclass(There), requires_grad=False)
    monkeypatch.setattr(modes, "outside_modes", lambda make, *about: make(*about))  # as this device is one
    with torch.no_grad(), Device():
        yield model, SOURCE if translates else []


def test_whatever_is_asked_of_a_model_is_computed_there_and_comes_back_from_there(there):
    model, source = there
    stack = "decoder." if source else ""
    with pytest.raises(RuntimeError, match="is on the CPU"):  # a tensor left behind is noticed
        (model.encoder if source else model).embed(torch.tensor([1]))
    assert model.device == ELSEWHERE and not isinstance(model.unembed.weight.cpu(), There)
    point = f"{stack}blocks.0.hook_attn_out"
    changed = (
        transformer.Scale(f"{stack}blocks.0.attn.hook_z", head=1, factor=0.5),
        transformer.MeanAblate(point),
        transformer.Patch(point, position=2, tokens=tuple(OTHER), source=tuple(source)),
        transformer.Steer(point, tokens=(1, 2), against=(3, 4), source=tuple(source)),
        transformer.SetAttention(f"{stack}blocks.0.attn.hook_pattern", 0, 2, 1, 0.5),
        *map(transformer.Without, ("mask", "scale", "norm", "positions")),
    )
    for interventions in ((), changed):
        found = transformer.trace_pass(model, TEXT, source, interventions=interventions)
        assert not any(isinstance(each, There) for each in found.tensors.values())
        assert (
            transformer.deviations(found)
            and transformer.logit_lens(found)
            and transformer.direct_logit_attribution(found, TEXT)
        )
        assert deviations_of_text(model, TEXT, source, interventions)
        assert outline_of_text(model, TEXT, source, interventions).to_bytes()
        assert lens_at(model, TEXT, source, 2, interventions)
        assert transformer.record_pass(model, TEXT, source, interventions=interventions).to_bytes()
        inputs = [torch.tensor([ids], device=model.device) for ids in (source, TEXT) if ids]
        assert transformer.record(model, inputs, None, interventions=interventions).to_bytes()
        assert transformer.ablation(model, TEXT, source, interventions).loss(TEXT).isfinite().all()
        assert list(ablated_in_batches(model, TEXT, source, interventions))
        for each in ("encoder", "decoder") if source else ("self",):
            patched = transformer.patching(
                model, TEXT, OTHER, 1, 2, source, source[::-1], stack=each, interventions=interventions
            )
            assert patched.restored.isfinite().all()
        for sampling in (transformer.Sampling(temperature=0), transformer.Sampling(0.8, 5, 0.9, 1)):
            options = {"max_new_tokens": 4, "source": source or None, "sampling": sampling, "names_filter": None}
            assert [step.rank for step in transformer.generate(model, TEXT, interventions=interventions, **options)]
    stream = stream_of(model, TEXT, source)
    assert losses_in_pieces(model, stream, torch.tensor(TEXT)).isfinite().all()
    assert list(logits_in_pieces(model, stream))
    for circuit in (transformer.qk_circuit, transformer.ov_circuit):
        assert circuit(model, f"{stack}blocks.0.attn", 1).full().isfinite().all()
    inputs = [torch.tensor([ids] * 2, device=model.device) for ids in (source, TEXT[:2]) if ids]
    assert write_greedily(model, inputs[-1], 3, *inputs[:-1]).shape == (2, 3)
    assert model(*inputs, past=transformer.KeyValueCache.for_model(model.config)).device == ELSEWHERE
    states = [DecodeState(model, text, source=source or None) for text in (TEXT[:2], TEXT[:3], TEXT[:3])]
    decoding = BatchedDecoding(model)
    for _ in range(4):
        assert not [step for step in decoding.step(states).values() if isinstance(step, Exception)]
