"""The errors of an export."""


class UserError(RuntimeError):
    """A module, an argument or a dynamic shape that cannot be exported, as torch._dynamo's."""
