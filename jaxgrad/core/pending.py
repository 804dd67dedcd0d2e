"""What stands for an array that has not been computed yet; core/deferred.py computes it."""


class Pending:
    """The result of a call that was noted, in place of an array.

    aval: the abstract value of that array; state: the stretch of calls that will compute it, and
    then the array itself.
    """

    __slots__ = ("aval", "state")

    shape = property(lambda self: self.aval.shape)
    ndim = property(lambda self: len(self.aval.shape))
    dtype = property(lambda self: self.aval.dtype.numpy)
    size = property(lambda self: self.aval.shape.numel())
    nbytes = property(lambda self: self.size * self.aval.dtype.itemsize)
