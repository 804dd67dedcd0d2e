"""Record what PyTorch's FullyShardedDataParallel gives in two processes.

make record PARTS=wrapped
"""

import json
import subprocess
import sys

from helpers.answers import TESTS, beside, save

# PyTorch refuses `empty` on a CPU, and `hybrid` needs shards
CASES = (
    *("plain", "names", "by hand", "reduced", "accumulated", "summoned", "ignored", "saved"),
    *("scaled", "refused", "precision both", "precision buffers", "precision inner inputs"),
    *("precision no inputs", "precision widened", "way default", "way flat", "way grads"),
    *("way replicated", "way size", "way transformer", "way lambda", "way or", "way always"),
    *("way module", "way custom"),
)

if __name__ == "__main__":
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    program = [TESTS / "distributed" / "wrapped.py", "torch", ";".join(CASES)]
    done = subprocess.run(
        [*command, "--standalone", *program], capture_output=True, text=True, check=True
    )
    _, _, text = done.stdout.partition("FOUND ")
    answers = json.JSONDecoder().raw_decode(text)[0]
    for case in answers:  # they learn what `plain` does, to rounding
        if case == "by hand" or case.startswith("way"):
            answers[case] = {key: answers[case][key] for key in ("units", "roots")}
    save(beside("distributed/test_wrapped.py"), answers, 1e-6)
