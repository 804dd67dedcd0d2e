"""How XLA compiles for the tests. Imported before anything that imports JAX.

Most kernels run once, so compiling them takes longest. `make oracle`, the wheel's tests in .ci/run
and the benchmarks set JAX_DISABLE_MOST_OPTIMIZATIONS=0, and compile as users do.
"""

import importlib.metadata
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# workers on all cores have no cores left for the threads of BLAS, which would wait for each other
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
os.environ.setdefault("JAXGRAD_CACHE", "off")  # what a test compiles is compiled now

# Another third of the time goes to the code that XLA writes for fused loops. A process with flags
# that its jaxlib does not know ends at once, so only versions that know these are given them.
FAST_COMPILATION = {
    "0.10": "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
}

_version = importlib.metadata.version("jaxlib").rpartition(".")[0]
if os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] == "1" and _version in FAST_COMPILATION:
    _flags = os.environ.get("XLA_FLAGS", "")
    if FAST_COMPILATION[_version] not in _flags:  # a test's subprocess inherits it
        os.environ["XLA_FLAGS"] = f"{_flags} {FAST_COMPILATION[_version]}".strip()
