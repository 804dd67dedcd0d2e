"""An application that serves a classifier: `MODEL=digits.pt uvicorn serve:app`."""

import os
from typing import Annotated

import numpy as np
from fastapi import Body, FastAPI
from pydantic import Field, FiniteFloat

import jaxgrad as torch
from jaxgrad import nn

FEATURES, SIZES = 64, (1, 8, 64)  # three programs serve all batches: their other rows are zeros
torch.set_eager("compiled")  # NumPy makes the first calls of so small a model otherwise
model = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 10))
model.load_state_dict(torch.load(os.environ["MODEL"]))
predict = torch.compile(torch.no_grad()(lambda batch: model(batch).softmax(-1)))
app = FastAPI()
Row = Annotated[list[FiniteFloat], Field(min_length=FEATURES, max_length=FEATURES)]
Rows = Annotated[list[Row], Field(min_length=1, max_length=SIZES[-1]), Body(embed=True)]


@app.get("/health")
def health() -> dict[str, str]:
    return {"status": "ok"}


@app.post("/predict")
def answer(rows: Rows) -> dict[str, list[list[float]]]:
    batch = np.zeros((next(size for size in SIZES if size >= len(rows)), FEATURES), np.float32)
    batch[: len(rows)] = rows
    return {"probabilities": predict(torch.from_numpy(batch)).numpy()[: len(rows)].tolist()}


for size in SIZES:  # compiled before the first request, or read from the cache on disk
    answer([[0.0] * FEATURES] * size)
