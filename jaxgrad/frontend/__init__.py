"""How users make, convert, index and print tensors."""
