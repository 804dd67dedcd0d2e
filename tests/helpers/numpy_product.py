"""A Function that computes by NumPy, for tests of transforms in PyTorch and in jaxgrad."""


def product_of(t):
    """A Function that multiplies by NumPy, with rules of its own for batches and derivatives."""

    class Product(t.autograd.Function):
        @staticmethod
        def forward(x, y):
            return t.tensor(x.detach().numpy() * y.detach().numpy())

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return Product.apply(grad, y), Product.apply(grad, x)

        @staticmethod
        def jvp(ctx, x_t, y_t):
            x, y = ctx.saved_tensors
            return Product.apply(x_t, y) + Product.apply(y_t, x)

        @staticmethod
        def vmap(info, in_dims, x, y):
            rank = max(v.ndim - (d is not None) for v, d in zip((x, y), in_dims, strict=True))
            x, y = (
                v.unsqueeze(0) if d is None else v.movedim(d, 0)
                for v, d in zip((x, y), in_dims, strict=True)
            )
            x, y = (v.reshape(len(v), *[1] * (rank + 1 - v.ndim), *v.shape[1:]) for v in (x, y))
            return Product.apply(x, y), 0

    return Product
