"""Tests that threads sharing a model never see each other's tensors."""

import sys
import threading
import time

import pytest
import torch
from torch import Tensor

from tests.helpers import tiny_model, unpadded
from transformer import DecoderOnly, HookPoint


def strangers_seen(model: DecoderOnly, threads: int, rounds: int) -> list[str]:
    """Everything that a thread saw of another one. Even threads record, odd ones ablate, each its own text, all at
    once: every one of them pauses in the middle of its pass, so that the passes overlap."""
    config = model.config
    texts = [unpadded(config, batch=1, seed=thread) for thread in range(threads)]

    def pause(tensor: Tensor, hook: HookPoint) -> None:
        time.sleep(0.0005)

    def ablation(thread: int) -> list:
        return [
            ("blocks.0.hook_attn_out", pause),
            ("blocks.1.attn.hook_z", lambda z, hook: z * thread),
            ("blocks.1.hook_mlp_out", lambda out, hook: out * 0 - thread),
        ]

    expected_logits = [
        model.run_with_hooks(text, fwd_hooks=ablation(thread) if thread % 2 else ())
        for thread, text in enumerate(texts)
    ]
    expected_caches = [model.run_with_cache(text)[1] for text in texts]
    barrier, found = threading.Barrier(threads), []

    def work(thread: int) -> None:
        for _ in range(rounds):
            barrier.wait(timeout=60)
            with torch.no_grad():
                if thread % 2:
                    logits = model.run_with_hooks(texts[thread], fwd_hooks=ablation(thread))
                else:
                    logits, cache = model.run_with_cache(texts[thread], fwd_hooks=[("blocks.0.hook_attn_out", pause)])
                    wrong = [
                        name
                        for name, tensor in expected_caches[thread].items()
                        if name not in cache or not torch.allclose(cache[name].float(), tensor.float(), atol=1e-5)
                    ]
                    found.extend(f"thread {thread} recorded another's {name}" for name in wrong)
            if not torch.allclose(logits, expected_logits[thread], atol=1e-5):
                found.append(f"thread {thread} got logits that are not its own")

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(interval)
    return found


@pytest.mark.parametrize(("threads", "rounds"), [(2, 60), (8, 20)])
def test_threads_that_share_a_model_never_see_one_another(threads, rounds):
    model = tiny_model()
    assert strangers_seen(model, threads, rounds) == []
