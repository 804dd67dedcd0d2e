"""The parts of `gradcheck`."""
