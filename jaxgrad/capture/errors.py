"""The errors that end a trace, so that its caller goes another way."""


class RunsUncompiled(RuntimeError):
    """The function does what a program cannot do, so that its call runs uncompiled."""


class ReadsTangent(RunsUncompiled):
    """The function uses a tangent of forward mode from outside, which a program cannot take in."""


class SharesMemory(RuntimeError):
    """A traced function does to captured tensors what it can do only where their memory is joined.
    `storages`: that memory.
    """

    def __init__(self, message: str, *storages):
        super().__init__(message)
        self.storages = storages
