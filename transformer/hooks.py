"""Hook points: identity modules at every tensor worth inspecting, where it can be recorded or replaced.

One model instance may serve many threads at once. So what a call records or changes belongs to the call: it travels
in a `ContextVar`, of which every thread has its own, and nothing is kept on a module. Calls nest: what one changes is
changed in those within it, too.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from .activation_cache import ON_REQUEST, ActivationCache, depths_of
from .checkpointing import refuse_checkpointing
from .hook_choice import NamePredicate, NamesFilter, checked_pair, chosen

HookFunction = Callable[[Tensor, "HookPoint"], Tensor | None]
ForwardHook = tuple[str | Collection[str] | NamePredicate, HookFunction]


class HookPoint(nn.Module):
    """Passes its input on unchanged; on the way it can be recorded or replaced.

    The model that owns it gives it its `name`. PyTorch's own `register_forward_hook`, `register_full_backward_hook`
    and their kin work on it too. Every hook is given a tensor of its own, and may write into it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.name = ""

    def __call__(self, tensor: Tensor) -> Tensor:
        """Edits of this call come first, then PyTorch's hooks; what is recorded is what they left."""
        call = _current_call.get() if _anyone_looks else None
        if call is not None:
            call = call.at(self) if self.name in call.concerned or call.outer is not None else None
        if call is not None:
            tensor = call.edit(self, tensor)
        if self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks:
            # Else nn.Module's machinery, and even to ask `_has_hooks`, costs more than the point.
            with _active(None):  # a model run inside the hook is a call of its own
                tensor = super().__call__(tensor.clone())
        return tensor if call is None else call.follow(self, tensor)

    def forward(self, tensor: Tensor) -> Tensor:
        return tensor

    @property
    def _has_hooks(self) -> bool:
        """True if PyTorch's own hooks are registered here, of whatever kind."""
        return bool(self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks)

    @property
    def is_watched(self) -> bool:
        """True if the call in progress, or a hook of PyTorch's own, wants this point's tensor."""
        call = _current_call.get() if _anyone_looks else None
        if call is not None and (self.name in call.concerned or call.outer is not None) and call.at(self) is not None:
            return True
        return self._has_hooks

    @property
    def is_edited(self) -> bool:
        """True if the call in progress, or a hook of PyTorch's own, may replace this point's tensor."""
        call = _current_call.get() if _anyone_looks else None
        call = None if call is None else call.at(self)
        return (call is not None and self.name in call.edited) or self._has_hooks


@dataclass
class _Call:
    """One forward pass: what it records and edits."""

    model: HookedModule
    keep: frozenset[str]
    edits: tuple[tuple[frozenset[str], HookFunction], ...] = ()
    differentiated: frozenset[str] = frozenset()
    """Points whose tensors stay in the graph, for a gradient to be taken there."""
    gradient_edits: tuple[tuple[frozenset[str], HookFunction], ...] = ()
    watched: frozenset[str] = frozenset()
    """Points that are computed as if they were to be kept."""
    ends: bool = False
    """Whether the pass is over once everything is kept that is to be kept."""
    tensors: dict[str, Tensor] = field(default_factory=dict)
    in_graph: dict[str, Tensor] = field(default_factory=dict)
    gradients: dict[str, Tensor] = field(default_factory=dict)
    repeats: Literal["no", "yes", "again"] = "no"
    """Whether a block that is computed again for the gradient is changed again, and whether this is that time."""

    def __post_init__(self) -> None:
        self.takes_gradients = torch.is_grad_enabled()
        self.outer = _current_call.get()
        self.edits = self.model.edits_around() + self.edits
        self.edited = self.differentiated.union(*(names for names, _ in self.edits))
        self.concerned = self.keep | self.edited | self.watched | {""}  # a new part's points have no names yet

    def at(self, point: HookPoint) -> _Call | None:
        """This call, or else one around it, if it concerns this very point."""
        if point.name in self.concerned and self.model.owns(point):
            return self if point.name in self.concerned else None
        return None if self.outer is None else self.outer.at(point)

    def repeated(self, repeats: Literal["yes", "again"]) -> _Call:
        """The same call in a block that is checkpointed."""
        call = copy.copy(self)
        call.repeats, call.outer = repeats, None if self.outer is None else self.outer.repeated(repeats)
        return call

    def edit(self, point: HookPoint, tensor: Tensor) -> Tensor:
        if point.name in self.edited and self.repeats == "no" and (torch.is_grad_enabled() or self.takes_gradients):
            refuse_checkpointing(point.name)
        for names, function in self.edits:
            if point.name in names:
                tensor = _apply(function, point, tensor)
        return tensor

    def follow(self, point: HookPoint, tensor: Tensor) -> Tensor:
        """Keep what is to be kept; returns the tensor to go on with."""
        if point.name in self.differentiated and tensor.is_floating_point():  # a mask has no gradient
            # A node of its own: two points, one after the other, may be given the same tensor.
            tensor = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
        if self.repeats == "again":
            return tensor
        if point.name in self.differentiated and tensor.is_floating_point():
            for names, function in self.gradient_edits:
                if point.name in names:
                    tensor.register_hook(partial(_apply, function, point))
            tensor.register_hook(partial(self.gradients.__setitem__, point.name))  # after the edits, so what they left
            self.in_graph[point.name] = tensor
        if point.name in self.keep:
            self.tensors[point.name] = tensor.detach()
            if self.ends and len(self.tensors) == len(self.keep):
                raise _AllRecorded
        return tensor


class _AllRecorded(Exception):
    """Ends a pass of which nothing more is wanted."""


_current_call: ContextVar[_Call | None] = ContextVar("current_call", default=None)
_anyone_looks = False
"""Whether any thread is in a call. Compiled code can't read a `ContextVar`, but is compiled again when this changes."""
_calls_in_progress = 0
_counting = threading.Lock()


class HookedModule(nn.Module):
    """A model whose hook points can be recorded and edited, call by call."""

    def name_hook_points(self) -> None:
        """Give each hook point its dotted name: once the model is built, and when a call meets one that is new."""
        self._points = {name: module for name, module in self.named_modules() if isinstance(module, HookPoint)}
        for name, point in self._points.items():
            point.name = name
        self._point_names = frozenset(self._points)
        self._cheap_names = frozenset(name for name in self._points if not name.endswith(ON_REQUEST))
        self._depths = depths_of(self._points)

    def owns(self, point: HookPoint) -> bool:
        """Whether a point is one of this model's, rather than of another that runs within a call of this one."""
        if self._points.get(point.name) is not point:
            self.name_hook_points()
        return self._points.get(point.name) is point

    @property
    def is_hooked(self) -> bool:
        """Whether a `hooked` around this code changes what the model computes, so that nothing from before holds."""
        return bool(self.edits_around())

    def edits_around(self) -> tuple[tuple[frozenset[str], HookFunction], ...]:
        """The edits that the calls in progress make in this model."""
        call = _current_call.get()
        while call is not None and call.model is not self:
            call = call.outer
        return () if call is None else call.edits

    def run_with_cache(
        self,
        *inputs: Tensor,
        names_filter: NamesFilter = None,
        fwd_hooks: Sequence[ForwardHook] = (),
        watched: NamesFilter = (),
        **kwargs,
    ) -> tuple[Tensor, ActivationCache]:
        """The forward pass, and the tensors at the chosen hook points.

        names_filter: None for every point but those in `ON_REQUEST`; a name, a list of names, or a predicate.
        fwd_hooks: interventions, as in `run_with_hooks`; what is recorded is what they left.
        watched: points that are computed as if they were recorded, and not kept. What isn't looked at may be computed
            by a faster kernel, which rounds otherwise; so equal `watched` gives equal numbers, to the last bit.
        Returns: the model's output and an `ActivationCache`.
        Raises: ValueError for a name that is no hook point of this model. A predicate true of none is warned of.
        """
        call = self._call(names_filter, fwd_hooks, watched)
        with _active(call):
            output = self(*inputs, **kwargs)
        return output, ActivationCache(call.tensors, self._depths, self)

    def run_until_recorded(
        self,
        *inputs: Tensor,
        names_filter: NamesFilter = None,
        fwd_hooks: Sequence[ForwardHook] = (),
        watched: NamesFilter = (),
    ) -> ActivationCache:
        """The tensors at the chosen hook points, as `run_with_cache` records them, in a pass that ends with the last of
        them: what comes after it is not computed. Raises: as there."""
        call = self._call(names_filter, fwd_hooks, watched)
        call.ends = True
        with _active(call), suppress(_AllRecorded):
            self(*inputs)
        return ActivationCache(call.tensors, self._depths)

    def run_with_hooks(self, *inputs: Tensor, fwd_hooks: Sequence[ForwardHook] = (), **kwargs) -> Tensor:
        """The forward pass with interventions.

        fwd_hooks: pairs of a hook point's name, a list of names or a predicate, and `fn(tensor, hook)`, which returns
        None, or a tensor of the same shape that takes its place; the tensor that it is given is a copy, and what it
            writes there counts too. They run in the order given, after those of `hooked` around this.
        Raises: ValueError for a name that is no hook point of this model, or a tensor of another shape; TypeError for
            what isn't such pairs. A predicate that is true of no point is warned of.
        """
        with self.hooked(fwd_hooks):
            return self(*inputs, **kwargs)

    @contextmanager
    def hooked(self, fwd_hooks: Sequence[ForwardHook]) -> Iterator[None]:
        """Inside, whatever this model or parts of it compute is changed as in `run_with_hooks`: a pass that begins in
        its middle, say, or one that is recorded. Raises: as there."""
        with _active(self._call((), fwd_hooks)):
            yield

    def run_with_gradients(
        self,
        *inputs: Tensor,
        of: Callable[[Tensor], Tensor],
        names_filter: NamesFilter = None,
        fwd_hooks: Sequence[ForwardHook] = (),
        bwd_hooks: Sequence[ForwardHook] = (),
        **kwargs,
    ) -> tuple[Tensor, ActivationCache]:
        """The forward pass, and the gradient of one number at the chosen hook points.

        of: makes that number of the model's output, a loss or a logit. names_filter: as in `run_with_cache`.
        fwd_hooks: interventions, as in `run_with_hooks`. bwd_hooks: the same for gradients: `fn(gradient, hook)`
        returns None, or a tensor of the same shape that takes its place, for everything before that point too.
        Returns: the model's output, and an `ActivationCache` of gradients, each of its tensor's shape: what the hooks
            left, 0 where the number doesn't depend on it. Masks have none. No parameter's `.grad` is written.
        Raises: ValueError for a name that is no hook point, a tensor of another shape, or more than one number;
            RuntimeError in PyTorch's inference mode.
        """
        if torch.is_inference_mode_enabled():
            raise RuntimeError("There are no gradients inside torch.inference_mode(); torch.no_grad() does no harm.")
        names, edits = self.chosen_names(names_filter), self._edits(bwd_hooks)
        everywhere = names.union(*(concerned for concerned, _ in edits))
        call = _Call(self, frozenset(), self._edits(fwd_hooks), everywhere, edits)
        with torch.enable_grad():
            with _active(call):
                output = self(*inputs, **kwargs)
            number = of(output)
        if number.numel() != 1:
            raise ValueError(f"`of` must return one number; it returned a tensor of shape {tuple(number.shape)}.")
        # What `grad` returns is what reached each point; the hooks there have kept what they made of it.
        reached = torch.autograd.grad(number, list(call.in_graph.values()), allow_unused=True, materialize_grads=True)
        gradients = {**dict(zip(call.in_graph, reached, strict=True)), **call.gradients}
        kept = {name: gradient for name, gradient in gradients.items() if name in names}
        return output.detach(), ActivationCache(kept, self._depths)

    def chosen_names(self, names_filter: NamesFilter) -> frozenset[str]:
        """The hook points that `run_with_cache` would record. Raises: ValueError as there."""
        if names_filter is None:
            return self._cheap_names
        return chosen(names_filter, self._point_names) if names_filter else frozenset()

    def _call(self, names_filter: NamesFilter, fwd_hooks: Sequence[ForwardHook], watched: NamesFilter = ()) -> _Call:
        everything = self.chosen_names(watched)
        return _Call(self, self.chosen_names(names_filter), self._edits(fwd_hooks), watched=everything)

    def _edits(self, hooks: Sequence[ForwardHook]) -> tuple[tuple[frozenset[str], HookFunction], ...]:
        if not isinstance(hooks, Iterable):
            raise TypeError(f"Hooks are a list of pairs, also of one: [(name, function)], and not {hooks!r}.")
        return tuple((chosen(target, self._point_names), function) for target, function in map(checked_pair, hooks))


@contextmanager
def _active(call: _Call | None) -> Iterator[None]:
    token = _current_call.set(call)
    _count(call, 1)
    try:
        yield
    finally:
        _count(call, -1)
        _current_call.reset(token)


class _Within(AbstractContextManager):
    """Makes what is computed inside part of a call. To be entered as often as that is."""

    def __init__(self, call: _Call | None) -> None:
        self._call, self._entered = call, []

    def __enter__(self) -> None:
        context = _active(self._call)
        context.__enter__()
        self._entered.append(context)

    def __exit__(self, *error: Any) -> None:
        self._entered.pop().__exit__(*error)


def checkpoint_contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """For `torch.utils.checkpoint.checkpoint(…, use_reentrant=False, context_fn=checkpoint_contexts)`: what is computed
    again for the gradient is then changed as it was the first time, whenever and in whatever thread that is."""
    call = _current_call.get()
    return _Within(call and call.repeated("yes")), _Within(call and call.repeated("again"))


def outside_calls() -> AbstractContextManager[None]:
    """Inside, whatever is computed belongs to no call: nothing is recorded or changed."""
    return _active(None)


def _count(call: _Call | None, change: int) -> None:
    global _anyone_looks, _calls_in_progress
    if call is not None:
        with _counting:
            _calls_in_progress += change
            _anyone_looks = _calls_in_progress > 0


def _apply(function: HookFunction, point: HookPoint, tensor: Tensor) -> Tensor:
    tensor = tensor.clone()
    with _active(None):  # a model run inside the hook is a call of its own
        replacement = function(tensor, point)
    if replacement is None:
        return tensor
    if not isinstance(replacement, Tensor) or replacement.shape != tensor.shape:
        given = tuple(replacement.shape) if isinstance(replacement, Tensor) else type(replacement).__name__
        raise ValueError(
            f"The hook at {point.name} returned {given}; it must return None or a tensor of shape "
            f"{tuple(tensor.shape)}."
        )
    return replacement
