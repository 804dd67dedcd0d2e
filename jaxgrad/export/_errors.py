"""The errors of an export."""

from ..fx.experimental import symbolic_shapes


class TorchDynamoException(RuntimeError):
    """An error of a trace, as torch._dynamo's."""


class UserError(TorchDynamoException):
    """A module, an argument or a dynamic shape that cannot be exported, as torch._dynamo's."""


class ConstraintViolationError(UserError, symbolic_shapes.ConstraintViolationError):
    """An example whose sizes are not those that `dynamic_shapes` allows."""


class UnsupportedInput(UserError, ValueError):
    """An argument of a type that no program takes."""


class Decided(Exception):
    """Code compares sizes, and goes one way for all of them."""

    def __init__(self, pair):
        super().__init__(f"{pair[0]} == {pair[1]}")
        self.pair = pair
