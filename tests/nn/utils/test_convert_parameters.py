"""Parameters as one vector, and a vector as parameters."""

from helpers.as_torch import as_torch, error, leaf


@as_torch("""
    tensor([1.0, 1.0, 1.0, 1.0, 5.0], requires_grad=True)
    [tensor([[0.0, 1.0], [2.0, 3.0]]), tensor(4.0)]
    [tensor([[0.0, 2.0], [4.0, 6.0]], requires_grad=True), tensor(8.0, requires_grad=True)]
    TypeError('expected torch.Tensor, but got: list')
""")
def test_parameters_to_vector_and_back(torch):
    utils = torch.nn.utils
    weights = [torch.ones(2, 2, requires_grad=True), leaf(torch, 5.0)]
    vector = utils.parameters_to_vector(weights)
    (vector * torch.arange(5.0)).sum().backward()
    utils.vector_to_parameters(torch.arange(5.0) * 2, weights)
    refused = error(utils.vector_to_parameters, [1.0], weights, words="expected torch.Tensor, but")
    return vector, [weight.grad for weight in weights], weights, refused
