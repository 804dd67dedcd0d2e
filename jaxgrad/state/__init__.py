"""Python state: what a function reads and changes of the objects that it reaches."""
