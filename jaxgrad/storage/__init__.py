"""Memory that tensors share: views, and writes in place."""
