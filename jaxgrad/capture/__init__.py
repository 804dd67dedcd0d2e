"""Compiled functions of state: captured tensors, guards and side effects."""


class RunsUncompiled(RuntimeError):
    """Raised if a function does something that a program cannot do, so that its call runs
    uncompiled.
    """


class ReadsTangent(RunsUncompiled):
    """Raised if a function uses a tangent of forward mode from outside, which a program cannot take
    in.
    """


class DrawsInTurn(RunsUncompiled):
    """Raised if a function draws random numbers whose count no trace knows."""


class SharesMemory(RuntimeError):
    """Raised if a traced function does something to captured tensors that needs their memory to be
    joined. `storages`: this memory.
    """

    def __init__(self, message: str, *storages):
        super().__init__(message)
        self.storages = storages
