"""GPT-2 of 124M parameters, a step with AdamW on 2 x 128 tokens: `run.py gpt2`. Each column runs in
a process of its own, so that the most memory it has held is known.
"""

import json
import pathlib
import resource
import statistics
import subprocess
import sys
import time

import figures

SIZES = {"VOCABULARY": 50257, "LENGTH": 1024, "WIDTH": 768, "HEADS": 12, "LAYERS": 12}
SHAPE, STEPS, WARM = (2, 129), 7, 3
COLUMNS = ("jaxgrad compiled", "jaxgrad eager", "torch")


def gpt2():
    """Prints seconds and gigabytes of each column; torch only where it is installed."""
    print(f"(r) GPT-2, {STEPS} steps: median seconds (the least), first step, most GB held")
    for column in COLUMNS:
        command = [sys.executable, __file__, column]
        process = subprocess.run(command, capture_output=True, text=True)
        if process.returncode:
            print(f"    {column:<20}{process.stderr.strip().splitlines()[-1]}")
            continue
        first, times, peak, loss = json.loads(process.stdout.splitlines()[-1])
        print(
            f"    {column:<20}{statistics.median(times):8.2f} ({min(times):.2f})"
            f"{first:8.2f}{peak:8.2f}    loss {loss:.4f}",
            flush=True,
        )
        subject = {"jaxgrad compiled": "jaxgrad", "jaxgrad eager": "jaxgrad, eager"}
        subject = subject.get(column, column)
        measures = {"A step": (statistics.median(times), "s"), "Most memory held": (peak, "GB")}
        for title, (value, unit) in measures.items():
            figures.note("r", title, unit, "torch", {"GPT-2": {subject: value}})


def column(name):
    """Train, and print a JSON list: the first step, the others, memory, and the last loss."""
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
    import models

    module, _, mode = name.partition(" ")
    torch = __import__(module)
    file = models.load("gpt", module)
    for constant, value in SIZES.items():
        setattr(file, constant, value)
    torch.manual_seed(0)
    model = file.model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, SIZES["VOCABULARY"], SHAPE)

    def step(tokens):
        optimizer.zero_grad()
        loss = file.loss(model, tokens)
        loss.backward()
        optimizer.step()
        return loss.detach()

    step = torch.jit(step) if mode == "compiled" else step
    times = []
    for _ in range(WARM + STEPS):
        begun = time.perf_counter()
        loss = step(tokens).item()
        times.append(time.perf_counter() - begun)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps([times[0], times[WARM:], peak, loss]))


if __name__ == "__main__":
    column(sys.argv[1])
