"""Differential equations: torchdiffeq, torchsde (with equal noise) and torchcde."""

from harness import fill, normal, program, train, uniform


def field(width=4):
    """A vector field, as a network of the state."""
    import torch

    class Field(torch.nn.Module):
        def __init__(self):
            super().__init__()
            layers = torch.nn.Linear(width, 8), torch.nn.Tanh(), torch.nn.Linear(8, width)
            self.layers = torch.nn.Sequential(*layers)

        def forward(self, time, state):
            return self.layers(state) * (1 + time)

    return fill(Field())


@program("torchdiffeq", "odeint", dtype="float64", compiled=True)
def odeint():
    import torch
    from torchdiffeq import odeint

    times, state = torch.linspace(0, 1, 5), normal(3, 4, name="state")

    def loss_of(model):
        path = odeint(model, state, times, method="rk4")
        return path[-1].square().mean(), path

    return train(field(), loss_of)


@program("torchdiffeq", "adaptive", dtype="float64", tolerance=1e-6)
def adaptive():
    import torch
    from torchdiffeq import odeint

    times = torch.linspace(0, 1, 4)
    results = {}
    for method in ("dopri5", "dopri8", "bosh3", "fehlberg2", "adaptive_heun"):
        model, state = field(), normal(3, 4, name="state").requires_grad_()
        path = odeint(model, state, times, method=method, rtol=1e-6, atol=1e-8)
        path.square().sum().backward()
        results |= {method: path, f"gradient.{method}": state.grad}
        results[f"gradient.weight.{method}"] = model.layers[0].weight.grad
    return results


@program("torchdiffeq", "fixed_steps", dtype="float64")
def fixed_steps():
    import torch
    from torchdiffeq import odeint

    times, state = torch.linspace(0, 1, 6), normal(3, 4, name="state")
    methods = "euler", "midpoint", "heun3", "rk4", "explicit_adams", "implicit_adams"
    with torch.no_grad():
        return {method: odeint(field(), state, times, method=method) for method in methods}


@program("torchdiffeq", "adjoint", dtype="float64", tolerance=1e-6)
def adjoint():
    import torch
    from torchdiffeq import odeint_adjoint

    times, state = torch.tensor([0.0, 0.4, 1.0]), normal(3, 4, name="state")

    def loss_of(model):
        path = odeint_adjoint(model, state, times, rtol=1e-6, atol=1e-8)
        return path[-1].square().mean(), path

    return train(field(), loss_of)


@program("torchdiffeq", "event", dtype="float64", tolerance=1e-6)
def event():
    import torch
    from torchdiffeq import odeint_event

    speed = torch.tensor([2.0], requires_grad=True)

    def fall(time, state):
        height, speed = state
        return speed, -9.81 * torch.ones_like(height)

    start = torch.tensor([1.0]), speed
    time, state = odeint_event(
        fall, start, torch.tensor(0.0), event_fn=lambda time, state: state[0][0], atol=1e-9
    )
    time.backward()
    return {"time": time, "height": state[0], "speed": state[1], "gradient": speed.grad}


def equation():
    import torch

    class Equation(torch.nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def __init__(self):
            super().__init__()
            self.drift = torch.nn.Linear(3, 3)
            self.spread = torch.nn.Linear(3, 3)

        def f(self, time, state):
            return torch.tanh(self.drift(state))

        def g(self, time, state):
            return torch.sigmoid(self.spread(state)) * 0.3

    return fill(Equation())


class Increments:
    """Brownian motion on a grid of times, from equal noise in every process."""

    levy_area_approximation = "none"

    def __init__(self, size, steps):
        import torch

        self.shape, self.steps = size, steps
        self.dtype, self.device = torch.get_default_dtype(), torch.device("cpu")
        moves = normal(steps, *size, name="increments", scale=steps**-0.5)
        self.path = torch.cat([torch.zeros(1, *size), moves.cumsum(0)])

    def __call__(self, start, end, return_U=False, return_A=False):
        return (
            self.path[round(float(end) * self.steps)] - self.path[round(float(start) * self.steps)]
        )


@program("torchsde", "sdeint", dtype="float64", compiled=True)
def sdeint():
    import torch
    import torchsde

    times, state = torch.tensor([0.0, 0.5, 1.0]), normal(2, 3, name="state")
    noise = Increments((2, 3), 8)

    def loss_of(model):
        path = torchsde.sdeint(model, state, times, bm=noise, dt=1 / 8, method="euler")
        return path.square().mean(), path

    return train(equation(), loss_of)


@program("torchsde", "adjoint", dtype="float64")
def sde_adjoint():
    import torch
    import torchsde

    model, state = equation(), normal(2, 3, name="state").requires_grad_()
    model.sde_type = "stratonovich"
    times = torch.tensor([0.0, 1.0])

    path = torchsde.sdeint_adjoint(
        model,
        state,
        times,
        bm=Increments((2, 3), 8),
        dt=1 / 8,
        method="reversible_heun",
        adjoint_method="adjoint_reversible_heun",
    )
    path.square().sum().backward()
    return {"path": path, "gradient.state": state.grad} | {
        f"gradient.{name}": value.grad for name, value in model.named_parameters()
    }


@program("torchcde", "interpolation", dtype="float64")
def interpolation():
    import torch
    import torchcde

    values = normal(2, 6, 3, name="values")
    values[0, 2, 1] = float("nan")
    values.requires_grad_()
    coefficients = {
        "hermite": torchcde.hermite_cubic_coefficients_with_backward_differences(values),
        "natural": torchcde.natural_cubic_coeffs(values),
        "linear": torchcde.linear_interpolation_coeffs(values, rectilinear=None),
    }
    spline = torchcde.CubicSpline(coefficients["natural"])
    results = coefficients | {"value": spline.evaluate(torch.tensor(2.3))}
    results["derivative"] = spline.derivative(torch.tensor(2.3))
    sum(value.sum() for value in results.values()).backward()
    return results | {"gradient": values.grad}


@program("torchcde", "cdeint", dtype="float64", compiled=True)
def cdeint():
    import torch
    import torchcde

    class Field(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 12)

        def forward(self, time, state):
            return self.layer(state).tanh().view(*state.shape, 3)

    model = fill(Field())
    coefficients = torchcde.hermite_cubic_coefficients_with_backward_differences(uniform(2, 6, 3))
    path = torchcde.CubicSpline(coefficients)
    state = normal(2, 4, name="state")

    def loss_of(model):
        states = torchcde.cdeint(
            X=path,
            z0=state,
            func=model,
            t=path.interval,
            adjoint=False,
            method="rk4",
            options={"step_size": 0.5},
        )
        return states[:, -1].square().mean(), states

    return train(model, loss_of)
