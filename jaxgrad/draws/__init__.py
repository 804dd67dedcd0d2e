"""What compiled functions draw: random numbers, the time, elements of iterators, seeds."""
