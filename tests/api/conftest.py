"""Defines the fixtures of the API's tests: tiny models, asked in process and over a socket."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from tests.api.cases import EVERY_KIND, SOURCE, TOKENS, open_model
from tests.tiny_models import ALPHABET, save_chatty, save_encoder, save_tiny, save_translator
from transformer import trace_pass
from transformer.api import cache
from transformer.api.app import create_app
from transformer.api.limits import Limits
from transformer.api.model_library import Library
from transformer.api.model_store import ModelStore
from transformer.api.open_models import OpenModel
from transformer.api.request_counts import Counts
from transformer.inference.tracing import Trace

SHAPES = {
    "rotary": {},
    "post-norm": {"norm": "post", "positions": "sinusoidal", "activation": "gelu"},
    "learned": {"positions": "learned", "attention_bias": False, "tie_embeddings": True},
    "grouped": {"n_heads": 4, "n_kv_heads": 2, "norm_kind": "rms", "mlp_gate": True, "activation": "silu"},
    "local": {"n_layers": 3, "attention_windows": (3, 0, 5)},
    "uniform": {"attention": "uniform", "norm": "none"},
    "attention-alone": {"d_ff": 0, "residual": False},
    "bigram": {"n_layers": 0},
    "many": {"alphabet": [*ALPHABET, *map(chr, range(0x4E00, 0x4E00 + 300))]},
}
"""Decoder-only models by name, the last of a large vocabulary."""
MODELS = [*SHAPES, "translator", "deep-translator", "chatty", "encoder"]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """Tiny models. Only to be read."""
    folder: Path = tmp_path_factory.mktemp("api")
    for seed, (name, changes) in enumerate(SHAPES.items()):
        save_tiny(folder, name, seed=seed, title=f"Tiny {name}", **changes)
    save_translator(folder)
    save_translator(folder, "deep-translator", n_layers=2, norm="post", n_heads=4, seed=5)
    save_chatty(folder)
    save_encoder(folder)
    return Library(folder)


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    cache.clear()


@pytest.fixture(scope="module", params=EVERY_KIND)
def case(request) -> tuple[OpenModel, tuple[int, ...], Trace]:
    """A model, its source, and its whole pass. Only to be read."""
    fields = EVERY_KIND[request.param]
    model, source = open_model(fields), SOURCE if "architecture" in fields else ()
    return model, source, trace_pass(model.checkpoint.model, TOKENS, source)


@pytest.fixture
def store() -> ModelStore:
    return ModelStore()


@pytest.fixture
def make_client(library: Library, store: ModelStore) -> Iterator[Callable[..., TestClient]]:
    """Makes clients of one application each, whom no limit stops unless `counts` does."""
    opened = []

    def make(counts: Counts | None = None, **options) -> TestClient:
        counts = counts or Counts(1e9, 10**9, 10**6)
        app = create_app(lambda: library, store.get, lambda app: Limits(app, counts))
        opened.append(TestClient(app, **options).__enter__())
        return opened[-1]

    yield make
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def client(make_client: Callable[..., TestClient]) -> TestClient:
    """A visitor whom no limit stops."""
    return make_client()


def events_of(response) -> list[tuple[str, dict]]:
    """The events of a stream, (name, data) each."""
    assert response.headers["content-type"].startswith("text/event-stream"), response.text
    found = [dict(line.split(": ", 1) for line in block.splitlines()) for block in response.text.split("\n\n") if block]
    return [(each["event"], json.loads(each["data"])) for each in found]


def ids(tokens) -> str | None:
    """Tokens as an address has them."""
    return ",".join(map(str, tokens)) or None


@contextmanager
def served(app) -> Iterator[str]:
    """The address of a server that serves the API meanwhile, under /api."""
    mounted = Starlette(routes=[Mount("/api", app)])
    server = uvicorn.Server(uvicorn.Config(mounted, port=0, log_config=None, lifespan="on", proxy_headers=False))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(20)
