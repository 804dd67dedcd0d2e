"""`jaxgrad compare`: a script under PyTorch and under jaxgrad, and where the two first differ."""
