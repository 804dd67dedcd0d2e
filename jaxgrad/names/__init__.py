"""PyTorch's names: which there are, which jaxgrad lacks, and what stands for those."""
