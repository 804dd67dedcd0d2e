"""The backward pass."""
