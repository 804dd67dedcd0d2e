"""Who holds a value, such as an array: its owner alone, or something else too. The number of
references tells, and interpreters differ in those that a call adds, so a count is compared with
that of a known owner, counted in the same form.
"""

import functools
import sys

# the numbers of references to the values of a list, counted in C
counts_of = functools.partial(map, sys.getrefcount)


class Held:
    """The references to the values that owners hold, where `value_of`, a function in C, gives the
    value of an owner. All counts are taken in C, so that no other thread changes them in between.
    """

    def __init__(self, value_of, *sole):
        """sole: an owner of a value that nothing else refers to, or several arguments."""
        self.value_of = value_of
        self.sole = self.count(*sole)

    def counts(self, *owners):
        """Yield the numbers of references to the values of owners."""
        return map(sys.getrefcount, map(self.value_of, *owners))

    def count(self, *owner) -> int:
        """The number of references to the value of an owner."""
        return next(self.counts(*zip(owner, strict=True)))

    def is_sole(self, *owner) -> bool:
        """Whether an owner alone holds its value."""
        return self.count(*owner) == self.sole
