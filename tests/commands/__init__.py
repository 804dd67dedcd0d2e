"""What `make` runs to write files that the tests compare, and to damage formulas."""
