"""Properties that are computed at their first use."""


class cached_property:
    """A property whose first value is kept in the instance's `__dict__`.

    Like that of `functools` since Python 3.12. Before, that one has a lock, which a thread would
    hold while it waits for another thread that needs the property of another instance. Two threads
    may both compute a value: the first one stays.

    >>> class Circle:
    ...     def __init__(self, radius):
    ...         self.radius = radius
    ...
    ...     @cached_property
    ...     def area(self):
    ...         return 3 * self.radius**2
    >>> circle = Circle(2)
    >>> circle.area, vars(circle)
    (12, {'radius': 2, 'area': 12})
    """

    def __init__(self, function):
        self.function, self.__doc__ = function, function.__doc__

    def __set_name__(self, owner, name: str):
        self.name = name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return instance.__dict__.setdefault(self.name, self.function(instance))
