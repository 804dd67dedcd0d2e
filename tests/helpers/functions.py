"""Functions (`autograd.Function`) that several test files differentiate."""


def function(torch, forward, backward=None, **members):
    """A Function `F` of these static methods."""
    members = {name: staticmethod(method) for name, method in members.items()}
    members["forward"] = staticmethod(forward)
    if backward is not None:
        members["backward"] = staticmethod(backward)
    return type("F", (torch.autograd.Function,), members)


def double(torch, **members):
    """Twice its input, with a gradient that is seven times too large."""
    return function(torch, lambda ctx, x: x * 2, lambda ctx, grad: grad * 14, **members)


def square(torch):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad

    return function(torch, forward, backward)


def giving(torch, gradients, inputs=1):
    """A Function that adds its inputs and whose backward returns `gradients(grad)`."""
    return function(torch, lambda ctx, *x: sum(x), lambda ctx, grad: gradients(grad))


def noting(torch, note, outputs=1):
    """A Function whose backward records its gradients."""

    def forward(ctx, x):
        note.append("forward")
        return x * 1 if outputs == 1 else tuple(x * (i + 1) for i in range(outputs))

    def backward(ctx, *grads):
        note.append([None if grad is None else grad.tolist() for grad in grads])
        return sum(grad for grad in grads if grad is not None)

    return function(torch, forward, backward)
