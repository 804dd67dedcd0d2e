"""docs/examples/generate.py generates PyTorch's tokens, each by a call of one program."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.checkout, pytest.mark.slow]

EXAMPLE = Path(__file__).parents[2] / "docs/examples/generate.py"
# what PyTorch 2.13 prints
TOKENS = [736, 547, 394, 203, 690, 68, 363, 941]

CODE = f"""
import sys
sys.path.insert(0, {str(EXAMPLE.parent)!r})
import jaxgrad.compat
jaxgrad.compat.install()
import generate, torch

torch.manual_seed(0)
model = generate.Decoder().eval().requires_grad_(False)
step = torch.compile(model)
prompt = torch.randint(generate.VOCABULARY, (1, 16))
with torch.no_grad():
    tokens = generate.stream(step, prompt, {len(TOKENS)})
    first = next(tokens)
    print([first, *tokens], step.count)
    # without a cache: all tokens at once
    both = torch.cat([prompt, torch.tensor([{TOKENS[:-1]}])], 1)
    print(model(both, torch.arange(both.shape[1])).item())
"""


def test_tokens_are_those_of_pytorch_and_of_a_pass_over_all():
    result = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert result.stdout == f"{TOKENS} 2\n{TOKENS[-1]}\n", result.stderr
