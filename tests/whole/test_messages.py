"""Mistakes of users: each message names the cause and says what to do. Kinds are PyTorch's."""

import pytest

import jaxgrad as torch

nn, F, optim, data = torch.nn, torch.nn.functional, torch.optim, torch.utils.data
weights = torch.ones(2, requires_grad=True)
scores, classes = torch.ones(2, 3), torch.tensor([0, 1])


def sgd(**options):
    return optim.SGD([weights], **({"lr": 0.1} | options))


class WithoutInit(nn.Module):
    def __init__(self):
        self.layer = nn.ReLU()


def two_optimizers():
    parameters = nn.Linear(2, 2).parameters()
    return optim.SGD(parameters, lr=0.1), optim.Adam(parameters)


def hook_that_returns_a_number():
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda grad: 3)
    x.sum().backward()


class WithListOfLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(2, 2)]


class Branch(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


def parametrized_by_a_function():
    nn.utils.parametrize.register_parametrization(nn.Linear(2, 2), "weight", torch.relu)


def schema_without_parentheses():
    torch.library.define("mistakes::f", "Tensor x")


QUANTIZED_INPUT = "torch.quantize_per_tensor or a QuantStub makes one"
MISTAKES = [
    # optimizers and schedulers
    (two_optimizers, ValueError, "a generator such as parameters() gives its tensors to one"),
    (lambda: optim.SGD(nn.Linear(2, 2), lr=0.1), TypeError, "got the module Linear: pass its"),
    (lambda: optim.SGD({"a": weights}, lr=0.1), TypeError, "one of the params is str: pass model"),
    (lambda: sgd(lr="0.1"), TypeError, "Invalid learning rate: '0.1': it must be a number"),
    (lambda: optim.Adam([weights], betas=0.9), TypeError, "betas must be a pair of numbers"),
    (lambda: optim.NAdam([weights], betas=0.9), TypeError, "betas must be a pair of numbers"),
    (lambda: sgd().load_state_dict({"a": 1}), KeyError, "this dict has the keys ['a']"),
    (lambda: sgd().load_state_dict(None), AttributeError, "of an optimizer gave, not NoneType"),
    (lambda: optim.lr_scheduler.MultiStepLR(sgd(), 3), TypeError, "a list of epochs, not 3"),
    (lambda: optim.lr_scheduler.StepLR(sgd(), 0).step(), ZeroDivisionError, "step_size is 0"),
    # data
    (
        lambda: data.DataLoader([1], collate_fn="stack"),
        TypeError,
        "must be a function, not 'stack'",
    ),
    (
        lambda: next(iter(data.DataLoader([{"a": 1}, {"b": 1}], batch_size=2))),
        KeyError,
        "'a': sample 1 of a batch has the keys ['b'], and the first ['a']",
    ),
    (lambda: torch.tensor("a"), TypeError, "a tensor holds numbers"),
    (lambda: torch.ones(2).item(), RuntimeError, "tolist() gives all of them"),
    (lambda: torch.ones(2).to("float32"), RuntimeError, "the dtype is torch.float32, without"),
    (lambda: nn.Linear(2, 2).to("half"), RuntimeError, "the dtype is torch.half, without"),
    (lambda: torch.tensor({"a": 1}), RuntimeError, "of numbers, tensors and arrays, and of lists"),
    # layers
    (lambda: nn.Linear(8, 2)(torch.ones(1, 2, 4)), RuntimeError, "linear must be 8 (in_features)"),
    (lambda: nn.Linear(3, 2)(scores.double()), RuntimeError, "the input has float64, the weight"),
    (lambda: nn.BatchNorm1d(3)(scores[:1]), ValueError, "drop_last=True), or call eval()"),
    (lambda: nn.Embedding(3, 2)(weights.detach()), RuntimeError, "convert them with .long()"),
    (lambda: nn.Linear(3, 2).device, AttributeError, "next(module.parameters()).device"),
    (
        lambda: setattr(nn.Linear(3, 2), "weight", scores),
        TypeError,
        "wrap it in nn.Parameter, or write its values by copy_ under no_grad()",
    ),
    (lambda: nn.Linear(1, 1).load_state_dict("a.pt"), TypeError, "Pass what torch.load of the"),
    (lambda: nn.Linear(1, 1).load_state_dict(nn.ReLU()), TypeError, "Pass what state_dict() gives"),
    (
        lambda: nn.Sequential(nn.LSTM(3, 2), nn.Linear(2, 1))(torch.ones(1, 4, 3)),
        TypeError,
        "a layer such as LSTM returns a tuple: pass one of its elements",
    ),
    (lambda: nn.utils.clip_grad_norm_(nn.Linear(1, 1), 1.0), TypeError, "pass its parameters()"),
    # autograd and func
    (lambda: weights.long().sum().backward(), RuntimeError, "on the way, integers, or no_grad()"),
    (lambda: weights.fill_(0), RuntimeError, "Write `with torch.no_grad():` around fill_"),
    (
        lambda: torch.func.vjp(torch.sin, classes.float())[1](weights, weights),
        TypeError,
        "the cotangents of several outputs are one tuple",
    ),
    (lambda: torch.func.grad(lambda x: (x.sum(), x))(weights), RuntimeError, "or has_aux=True"),
    (lambda: torch.func.grad(lambda x: x.sum().item())(weights), RuntimeError, "without item()"),
    # names that PyTorch removed
    (lambda: torch.rfft, AttributeError, "it is torch.fft.rfft"),
    # losses
    (
        lambda: F.cross_entropy(scores, classes[:, None]),
        RuntimeError,
        "drop its last dimension by squeeze(1)",
    ),
    (
        lambda: F.cosine_embedding_loss(scores, scores, scores),
        RuntimeError,
        "takes 1 or -1 for each row, and got a target of shape [2, 3]",
    ),
    (lambda: nn.CrossEntropyLoss(scores, classes), RuntimeError, "nn.CrossEntropyLoss()(input, ta"),
    (lambda: F.cross_entropy(classes, scores), NotImplementedError, "the scores come first"),
    (
        lambda: F.binary_cross_entropy_with_logits(weights, classes),
        RuntimeError,
        "takes floating point targets; convert them with .to(torch.float32)",
    ),
    # modules
    (WithoutInit, AttributeError, "call super().__init__() first"),
    (lambda: nn.Sequential([nn.ReLU()]), TypeError, "pass its modules one by one"),
    (lambda: nn.Sequential(torch.relu), TypeError, "take the layer, nn.ReLU() in place of relu"),
    (lambda: nn.ModuleList()(scores), NotImplementedError, "call each of its modules"),
    (lambda: nn.LSTM(3, 2)(torch.ones(4, 1, 3), torch.ones(1, 1, 2)), IndexError, "(h_0, c_0)"),
    (lambda: F.interpolate(torch.ones(1, 1, 2, 2), size=4, mode="cubic"), Exception, "'cubic'"),
    (lambda: F.conv2d(torch.ones(1, 3, 4, 4), torch.ones(2, 3, 3)), RuntimeError, "3 dimensions"),
    # tensors
    (
        lambda: classes.div_(2),
        RuntimeError,
        "convert the tensor to torch.float32 first, or use div",
    ),
    (lambda: torch.einsum(scores, "ij->i"), TypeError, "the equation is the first argument"),
    (lambda: scores.view(2.0, 3), TypeError, "argument 'size' must be ints, not float"),
    (lambda: torch.relu(scores, scores), TypeError, "takes 1 positional argument but 2"),
    (hook_that_returns_a_number, TypeError, "a hook returns a tensor in place of the gradient"),
    (
        lambda: torch.distributions.Normal(0.0, 1.0).sample(3),
        TypeError,
        "sample_shape is a shape, as in sample((3,))",
    ),
    # names, devices
    (lambda: torch.cross_entropy(scores, classes), AttributeError, "torch.nn.functional.cross_ent"),
    (lambda: torch.Linear(2, 2), AttributeError, "it is torch.nn.Linear"),
    (lambda: nn.Adam([weights]), AttributeError, "it is torch.optim.Adam"),
    (lambda: nn.ReLu(), AttributeError, "did you mean 'ReLU'?"),
    (lambda: weights.to("gpu:0"), RuntimeError, "GPUs are of type cuda"),
    (lambda: torch.device("cuda", "0"), TypeError, "'index' (position 2) must be int, not str"),
    # from training to use
    (lambda: optim.SGD(WithListOfLayers().parameters()), ValueError, "use nn.ModuleList"),
    (
        lambda: torch.export.export(Branch(), (scores,)),
        RuntimeError,
        "Choose by torch.cond",
    ),
    (lambda: torch.ao.nn.quantized.Linear(3, 2)(scores), NotImplementedError, QUANTIZED_INPUT),
    (parametrized_by_a_function, AttributeError, "is a Module; call a function in the forward"),
    (schema_without_parentheses, ValueError, 'expected schema to look like e.g. "(Tensor x)'),
    (
        lambda: nn.utils.rnn.pad_sequence([torch.ones(2, 3), torch.ones(3, 4)]),
        RuntimeError,
        "sequence 1 has shape [3, 4] where the first has [2, 3]",
    ),
]


@pytest.mark.parametrize(("mistake", "kind", "words"), MISTAKES)
def test_message(mistake, kind, words):
    with pytest.raises(kind) as caught:
        mistake()
    assert words in str(caught.value)


def test_a_tensor_made_of_tensors_that_require_grad_warns():
    """Its elements become numbers, which have no gradients."""
    with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True to a scalar"):
        assert torch.tensor([weights[0], weights[1]]).tolist() == [1, 1]
