"""Checks of the layers of `nn` that layers for training take the place of."""


def check_float_layer(cls, mod):
    """Raise AssertionError unless a layer is of the class for which `cls` stands, with a `qconfig`.

    cls: a class with `_FLOAT_MODULE`.
    """
    if type(mod) is not cls._FLOAT_MODULE:
        raise AssertionError(
            f"qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}, got "
            f"{type(mod).__name__}"
        )
    if not getattr(mod, "qconfig", None):
        raise AssertionError("Input float module must have a valid qconfig")
