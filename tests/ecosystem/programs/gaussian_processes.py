"""Gaussian processes: gpytorch, the linear operators below it, and botorch above it."""

from harness import fill, gradients, named, normal, program, train, uniform


def regression_data():
    inputs = uniform(20, 2, name="inputs")
    return inputs, (6 * inputs[:, 0]).sin() + inputs[:, 1] + 0.1 * normal(20, name="noise")


def exact_gp(inputs, targets):
    import gpytorch

    class ExactGP(gpytorch.models.ExactGP):
        def __init__(self):
            super().__init__(inputs, targets, gpytorch.likelihoods.GaussianLikelihood())
            self.mean_module = gpytorch.means.ConstantMean()
            kernel = gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=2)
            self.covar_module = gpytorch.kernels.ScaleKernel(kernel)

        def forward(self, points):
            mean, covariance = self.mean_module(points), self.covar_module(points)
            return gpytorch.distributions.MultivariateNormal(mean, covariance)

    return ExactGP()


@program("gpytorch", "exact", compiled=True, dtype="float64")
def exact():
    import gpytorch
    import torch

    inputs, targets = regression_data()
    model = exact_gp(inputs, targets)
    likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    results = train(model, lambda model: -likelihood(model(inputs), targets), learning_rate=0.1)
    model.eval()
    points = uniform(5, 2, name="points").requires_grad_()
    posterior = model.likelihood(model(points))
    posterior.variance.sum().backward()
    results |= {"mean": posterior.mean, "variance": posterior.variance}
    results |= {"point_gradient": points.grad, "covariance": posterior.covariance_matrix}
    with torch.no_grad():
        lower, upper = posterior.confidence_region()
    return results | {"lower": lower, "upper": upper}


@program("gpytorch", "variational", compiled=True, dtype="float64")
def variational():
    import gpytorch
    from gpytorch import variational as parts

    class Variational(gpytorch.models.ApproximateGP):
        def __init__(self, points):
            distribution = parts.CholeskyVariationalDistribution(len(points))
            super().__init__(parts.VariationalStrategy(self, points, distribution))
            self.mean_module = gpytorch.means.LinearMean(2)
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, points):
            mean, covariance = self.mean_module(points), self.covar_module(points)
            return gpytorch.distributions.MultivariateNormal(mean, covariance)

    inputs, targets = regression_data()
    model = Variational(uniform(6, 2, name="inducing"))
    model.variational_strategy.variational_params_initialized.fill_(1)
    fill(model.mean_module)
    model.likelihood = gpytorch.likelihoods.GaussianLikelihood()
    bound = gpytorch.mlls.VariationalELBO(model.likelihood, model, num_data=20)
    return train(model, lambda model: -bound(model(inputs), targets), learning_rate=0.1)


@program("gpytorch", "kernels", dtype="float64")
def kernels():
    from gpytorch import kernels

    left, right = uniform(4, 2, name="left"), uniform(3, 2, name="right")
    results = {}
    for kernel in (
        kernels.RBFKernel(),
        kernels.MaternKernel(nu=0.5),
        kernels.MaternKernel(nu=1.5),
        kernels.PeriodicKernel(),
        kernels.CosineKernel(),
        kernels.LinearKernel(),
        kernels.PolynomialKernel(power=2),
        kernels.RQKernel(),
        kernels.SpectralMixtureKernel(num_mixtures=2, ard_num_dims=2),
        kernels.PiecewisePolynomialKernel(),
        kernels.RBFKernelGrad(),
        kernels.RBFKernel() + kernels.LinearKernel(),
        kernels.RBFKernel() * kernels.PeriodicKernel(),
    ):
        name = f"{type(kernel).__name__}{len(results)}"
        fill(kernel)
        matrix = kernel(left, right).to_dense()
        matrix.square().sum().backward()
        results |= {name: matrix} | named(gradients(kernel), name)
    return results


@program("linear_operator", "operators", dtype="float64")
def operators():
    import torch
    from linear_operator import operators, settings, to_linear_operator

    root = normal(5, 5, name="root").requires_grad_()
    matrix = root @ root.T + 5 * torch.eye(5)
    right = normal(5, 2, name="right")
    diagonal = operators.DiagLinearOperator(uniform(5, name="diagonal"))
    results = {}
    cases = {
        "dense": to_linear_operator(matrix),
        "sum": to_linear_operator(matrix) + diagonal,
        "added_diagonal": to_linear_operator(matrix).add_diagonal(torch.tensor(0.5)),
        "kronecker": operators.KroneckerProductLinearOperator(
            to_linear_operator(matrix), to_linear_operator(matrix[:2, :2])
        ),
        "toeplitz": operators.ToeplitzLinearOperator(torch.tensor([4.0, 1.0, 0.5, 0.2, 0.1])),
        "low_rank": operators.LowRankRootLinearOperator(normal(5, 2)).add_diagonal(torch.ones(5)),
    }
    with settings.fast_computations(log_prob=False, covar_root_decomposition=False):
        for name, operator in cases.items():
            vectors = right.repeat(operator.shape[-1] // 5, 1)
            quadratic, determinant = operator.inv_quad_logdet(vectors, logdet=True)
            results[f"{name}.product"] = operator @ vectors
            results[f"{name}.solution"] = operator.solve(vectors)
            results[f"{name}.quadratic"], results[f"{name}.logdet"] = quadratic, determinant
            results[f"{name}.cholesky"] = operator.cholesky().to_dense()
            results[f"{name}.diagonal"] = operator.diagonal()
    sum(value.sum() for value in results.values()).backward()
    return results | {"gradient": root.grad}


@program("linear_operator", "torch_functions", dtype="float64")
def torch_functions():
    import torch
    from linear_operator import to_linear_operator

    root = normal(5, 5, name="root").requires_grad_()
    operator = to_linear_operator(root @ root.T + 5 * torch.eye(5))
    right = normal(5, 2, name="right")
    results = {
        "matmul": torch.matmul(operator, right),
        "logdet": torch.logdet(operator),
        "solve": torch.linalg.solve(operator, right),
        "diagonal": torch.diagonal(operator),
        "eigenvalues": torch.linalg.eigh(operator)[0],
        "sum": torch.sum(operator, -1),
        "dense": (operator * 2 + operator).to_dense(),
    }
    sum(value.sum() for value in results.values()).backward()
    return results | {"gradient": root.grad}


def botorch_model():
    from botorch.models import SingleTaskGP

    inputs, targets = regression_data()
    model = SingleTaskGP(inputs, targets.unsqueeze(-1))
    return model.eval(), targets


@program("botorch", "acquisition", dtype="float64")
def acquisition():
    from botorch import acquisition
    from botorch.sampling import IIDNormalSampler

    model, targets = botorch_model()
    sampler = IIDNormalSampler(normal(8).shape, seed=0)
    shape = sampler._get_collapsed_shape(model.posterior(uniform(4, 1, 2, name="points")))
    sampler.register_buffer("base_samples", normal(*shape, name="base"))
    functions = {
        "improvement": acquisition.ExpectedImprovement(model, best_f=targets.max()),
        "log_improvement": acquisition.LogExpectedImprovement(model, best_f=targets.max()),
        "probability": acquisition.ProbabilityOfImprovement(model, best_f=targets.max()),
        "bound": acquisition.UpperConfidenceBound(model, beta=0.2),
        "mean": acquisition.PosteriorMean(model),
        "qei": acquisition.qExpectedImprovement(model, best_f=targets.mean(), sampler=sampler),
    }
    results = {}
    for name, function in functions.items():
        points = uniform(4, 1, 2, name="points").requires_grad_()
        values = function(points)
        values.sum().backward()
        results |= {name: values, f"gradient.{name}": points.grad}
    return results


@program("botorch", "fit_and_optimize", dtype="float64", tolerance=1e-4)
def fit_and_optimize():
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    model, targets = botorch_model()
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    candidate, value = optimize_acqf(
        LogExpectedImprovement(model, best_f=targets.max()),
        bounds=torch.tensor([[0.0, 0.0], [1.0, 1.0]]),
        q=1,
        num_restarts=2,
        batch_initial_conditions=uniform(2, 1, 2, name="starts"),
    )
    return {"candidate": candidate, "value": value} | dict(model.named_parameters())


@program("botorch", "step", dtype="float64")
def step():
    from gpytorch.mlls import ExactMarginalLogLikelihood

    model, _ = botorch_model()
    model.train()
    likelihood = ExactMarginalLogLikelihood(model.likelihood, model)

    def loss_of(model):
        return -likelihood(model(*model.train_inputs), model.train_targets)

    return train(model, loss_of, learning_rate=0.1)
