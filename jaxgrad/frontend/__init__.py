"""What users call to create, convert, index, print and save tensors."""
