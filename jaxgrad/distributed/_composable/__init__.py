"""Ways to train in parallel that are functions of modules."""
