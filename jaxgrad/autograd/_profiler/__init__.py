"""The parts of the profiler."""
