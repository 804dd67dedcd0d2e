"""Records a run of a script: what its calls of torch take and return, and the gradients.

The recorder runs under PyTorch and under jaxgrad. It is loaded from this folder as a package of its
own where jaxgrad is not installed, so it imports neither of the two: the script's `torch` is
whichever the process offers.
"""
