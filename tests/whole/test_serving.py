"""docs/examples/serve.py answers a client over HTTP."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import numpy as np
import pytest
from helpers import hangs

import jaxgrad as torch
from jaxgrad import nn

pytestmark = [pytest.mark.checkout, pytest.mark.slow]

EXAMPLES = Path(__file__).parents[2] / "docs/examples"


@contextlib.contextmanager
def serving(model, cache):
    """A client of a server process, which listens at a port of this machine alone."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        descriptor, (host, port) = listener.fileno(), listener.getsockname()
        process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "serve:app", "--fd", str(descriptor)],
            cwd=EXAMPLES,
            env={**os.environ, "MODEL": str(model), "JAXGRAD_CACHE": str(cache)},
            pass_fds=[descriptor],
        )
    try:  # the first request waits until the server accepts it
        with httpx.Client(base_url=f"http://{host}:{port}", timeout=hangs.LIMIT) as client:
            yield client
    finally:
        process.terminate()
        process.wait(hangs.LIMIT)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    torch.manual_seed(0)
    state = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).state_dict()
    path = tmp_path_factory.mktemp("model") / "digits.pt"
    torch.save(state, path)
    return path, [tensor.numpy() for tensor in state.values()]


def expected(rows, weights):
    first, bias, second, other = weights
    scores = np.maximum(rows @ first.T + bias, 0) @ second.T + other
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


async def answers(url, parts):
    async with httpx.AsyncClient(base_url=url, timeout=hangs.LIMIT) as client:
        requests = [client.post("/predict", json={"rows": part.tolist()}) for part in parts]
        return await asyncio.gather(*requests)


BAD = [
    b"",
    b"no json",
    b"[]",
    b'{"rows": null}',
    b'{"rows": [[[' + b", ".join([b"1"] * 64) + b"]]]}",
    b'{"rows": [[' + b", ".join([b"Infinity"] * 64) + b"]]}",
    b'{"rows": [[' + b", ".join([b"1e999"] * 64) + b"]]}",
    b'{"rows": [[' + b", ".join([b"null"] * 64) + b"]]}",
    b"{}",
    b'{"rows": []}',
    b'{"rows": [[1, 2]]}',
    b'{"rows": [["one"]]}',
    b'{"rows": [[' + b", ".join([b"NaN"] * 64) + b"]]}",
    b'{"rows": [[' + b", ".join([b"1"] * 65) + b"]]}",
    b'{"rows": [' + b", ".join([b"[" + b", ".join([b"1"] * 64) + b"]"] * 65) + b"]}",
]


def test_server(weights, tmp_path):
    path, arrays = weights
    rows = np.random.default_rng(0).normal(size=(77, 64)).astype(np.float32)
    parts = np.split(rows, [1, 2, 3, 5, 9, 20, 60])
    with serving(path, tmp_path / "cache") as client:
        assert client.get("/health").json() == {"status": "ok"}
        for response, part in zip(asyncio.run(answers(client.base_url, parts)), parts, strict=True):
            assert response.status_code == 200
            results = response.json()["probabilities"]
            np.testing.assert_allclose(results, expected(part, arrays), rtol=1e-5, atol=1e-6)
        for content in BAD:
            response = client.post("/predict", content=content)
            assert response.status_code == 422 and response.json()["detail"][0]["msg"], content
        assert client.get("/predict").status_code == 405
        with socket.create_connection((client.base_url.host, client.base_url.port)) as gone:
            gone.sendall(b"POST /predict HTTP/1.1\r\nhost: a\r\ncontent-length: 999\r\n\r\n{")
        assert client.get("/health").status_code == 200
    files = {file.name for file in (tmp_path / "cache").rglob("*")}
    with serving(path, tmp_path / "cache") as client:  # a warm start compiles nothing
        (response,) = asyncio.run(answers(client.base_url, [rows[:3]]))
        np.testing.assert_allclose(
            response.json()["probabilities"], expected(rows[:3], arrays), rtol=1e-5, atol=1e-6
        )
    assert {file.name for file in (tmp_path / "cache").rglob("*")} == files != set()
