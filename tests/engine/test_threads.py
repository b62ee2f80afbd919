"""Tests that threads sharing a model never see each other's tensors."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.helpers import tiny_model, unpadded

PAUSE = ("blocks.0.hook_attn_out", lambda tensor, hook: time.sleep(0.0005))


@pytest.fixture
def _often_switched():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_often_switched")
@pytest.mark.parametrize(("threads", "rounds"), [(2, 20), (8, 6)])
def test_threads_that_share_a_model_never_see_one_another(threads, rounds):
    """Even ones record, odd ones ablate, each its own text; every one pauses in its pass, so that passes overlap."""
    model = tiny_model()

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

    expected, barrier = [work(thread) for thread in range(threads)], threading.Barrier(threads)
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(rounds):
            for found, (logits, cache) in zip(pool.map(beside_others, range(threads)), expected, strict=True):
                torch.testing.assert_close(found[0], logits, atol=1e-5, rtol=0)
                assert list(found[1]) == list(cache)
                for name, tensor in cache.items():
                    torch.testing.assert_close(found[1][name], tensor, atol=1e-5, rtol=0)
