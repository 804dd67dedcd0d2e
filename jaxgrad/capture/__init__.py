"""Functions of state, compiled: what they read, what must hold, what they change."""
