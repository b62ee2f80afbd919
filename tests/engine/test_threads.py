"""Tests that threads sharing a model never see each other's tensors."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.helpers import tiny_model, unpadded

PAUSE = ("blocks.0.hook_attn_out", lambda tensor, hook: time.sleep(0.0005))


@pytest.mark.parametrize(("threads", "rounds"), [(2, 20), (8, 6)])
def test_threads_that_share_a_model_never_see_one_another(threads, rounds):
    """Even ones record, odd ones ablate, each its own text; every one pauses in its pass, so that passes overlap."""
    model, barrier, interval = tiny_model(), threading.Barrier(threads), sys.getswitchinterval()

    @torch.no_grad()
    def work(thread):
        text = unpadded(model.config, batch=1, seed=thread)
        if thread % 2 == 0:
            return model.run_with_cache(text, fwd_hooks=[PAUSE])
        ablated = ("blocks.1.attn.hook_z", lambda z, hook: z * thread)
        shifted = ("blocks.1.hook_mlp_out", lambda out, hook: out * 0 - thread)
        return model.run_with_hooks(text, fwd_hooks=[PAUSE, ablated, shifted]), {}

    def beside_others(thread):
        barrier.wait(timeout=60)
        return work(thread)

    expected = [work(thread) for thread in range(threads)]
    try:
        sys.setswitchinterval(1e-5)
        with ThreadPoolExecutor(threads) as pool:
            found = [each for _ in range(rounds) for each in pool.map(beside_others, range(threads))]
    finally:
        sys.setswitchinterval(interval)
    for (logits, cache), (wanted, recorded) in zip(found, expected * rounds, strict=True):
        torch.testing.assert_close(logits, wanted, atol=1e-5, rtol=0)
        assert [*cache] == [*recorded]
        for name, tensor in recorded.items():
            torch.testing.assert_close(cache[name], tensor, atol=1e-5, rtol=0)
