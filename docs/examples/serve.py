"""An application that serves a classifier: `MODEL=digits.pt uvicorn serve:app`."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import numpy as np
from fastapi import FastAPI
from numpy.typing import ArrayLike
from pydantic import BaseModel, Field, FiniteFloat

import jaxgrad as torch
from jaxgrad import nn

FEATURES, SIZES = 64, (1, 8, 64)  # three programs serve all batches: their other rows are zeros
torch.set_eager("compiled")  # NumPy makes the first calls of so small a model otherwise
model = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 10))
model.load_state_dict(torch.load(os.environ["MODEL"]))
predict = torch.compile(torch.no_grad()(lambda batch: model(batch).softmax(-1)))


def probabilities(rows: ArrayLike) -> list[list[float]]:
    rows = np.asarray(rows)
    batch = np.zeros((next(size for size in SIZES if size >= len(rows)), FEATURES), np.float32)
    batch[: len(rows)] = rows
    answers: list[list[float]] = predict(torch.from_numpy(batch)).numpy()[: len(rows)].tolist()
    return answers


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    for size in SIZES:  # compiled before the first request, or read from the cache on disk
        probabilities(np.zeros((size, FEATURES)))
    yield


Row = Annotated[list[FiniteFloat], Field(min_length=FEATURES, max_length=FEATURES)]


class Request(BaseModel):
    rows: Annotated[list[Row], Field(min_length=1, max_length=SIZES[-1])]


app = FastAPI(lifespan=lifespan)


@app.get("/health")
def health() -> dict[str, str]:
    return {"status": "ok"}


@app.post("/predict")
def answer(request: Request) -> dict[str, list[list[float]]]:
    # in a thread; anything else than such rows is answered with 422
    return {"probabilities": probabilities(request.rows)}
