"""torch.optim.swa_utils, against PyTorch's numbers."""

import numpy as np
import pytest
from helpers.as_torch import as_torch, error

import jaxgrad
from jaxgrad.optim import swa_utils


def averaged(torch, **options):
    """What an average holds after each of four steps, and after `update_bn`."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)).double()
    x = torch.arange(8.0, dtype=torch.float64).reshape(4, 2)
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.fill_(0.3 * number + 0.1)
    average, sums = torch.optim.swa_utils.AveragedModel(model, **options), []
    for step in range(4):
        model(x * (step + 1))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * (step + 1)).mul_(1.1)
        average.update_parameters(model)
        values = [*average.parameters(), *average.buffers()]
        sums.append([value.detach().double().sum().item() for value in values])
    average.eval()
    torch.optim.swa_utils.update_bn([x, [x * 3, "label"]], average)
    statistics = [value.double().sum().item() for value in average.buffers()]
    return [sums, statistics, average.module[1].momentum, average.training]


# PyTorch's weights of its mean have 32 bits
@pytest.mark.slow
@as_torch(precision=1e-7)
def test_averages_of_weights(torch):
    utils = torch.optim.swa_utils
    return [
        averaged(torch),
        averaged(torch, multi_avg_fn=utils.get_swa_multi_avg_fn()),
        averaged(torch, avg_fn=utils.get_swa_avg_fn()),
        averaged(torch, use_buffers=True),
    ]


@as_torch(precision=1e-12)
def test_exponential_averages_of_weights(torch):
    utils = torch.optim.swa_utils
    return [
        averaged(torch, multi_avg_fn=utils.get_ema_multi_avg_fn(0.9)),
        averaged(torch, avg_fn=utils.get_ema_avg_fn(0.9)),
        averaged(torch, multi_avg_fn=utils.get_ema_multi_avg_fn(0.9), use_buffers=True),
        list(utils.AveragedModel(torch.nn.Linear(1, 1)).state_dict()),
    ]


@as_torch(precision=1e-12)
def test_lrs_of_swalr(torch):
    rates = []
    for options in (
        {"anneal_epochs": 3},
        {"anneal_epochs": 0},
        {"anneal_epochs": 4, "anneal_strategy": "linear"},
    ):
        leaves = [torch.ones(1, requires_grad=True) for _ in range(2)]
        groups = [{"params": leaves[:1]}, {"params": leaves[1:], "lr": 0.2}]
        optimizer = torch.optim.SGD(groups, lr=1.0)
        scheduler = torch.optim.swa_utils.SWALR(optimizer, [0.05, 0.1], **options)
        for _ in range(7):
            optimizer.step()
            scheduler.step()
            rates.append(scheduler.get_last_lr())
    utils = torch.optim.swa_utils
    refused = [
        error(lambda: utils.get_ema_avg_fn(2.0)),
        error(lambda: utils.SWALR(optimizer, 0.1, anneal_strategy="x")),
        error(lambda: utils.SWALR(optimizer, 0.1, anneal_epochs=-1)),
        error(lambda: utils.SWALR(optimizer, [0.1] * 3), words="swa_lr"),
    ]
    return rates, refused


def test_compiled_averages_are_those_of_eager_code():
    def run(compiled):
        model = jaxgrad.nn.Linear(2, 1, bias=False)
        jaxgrad.nn.init.constant_(model.weight, 0.0)
        fn = swa_utils.get_ema_multi_avg_fn(0.5)
        average = swa_utils.AveragedModel(model, multi_avg_fn=fn)

        def step():
            with jaxgrad.no_grad():
                model.weight.add_(1.0)
            average.update_parameters(model)

        step = jaxgrad.jit(step) if compiled else step
        values = []
        for _ in range(4):
            step()
            values.append(average.module.weight[0, 0].item())
        assert not compiled or step.count == 1
        return values

    assert run(False) == run(True) == [1.0, 1.5, 2.25, 3.125]


def test_errors_of_averaged_models():
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn"):
        swa_utils.AveragedModel(jaxgrad.nn.Identity(), avg_fn=np.add, multi_avg_fn=np.add)
    swa_utils.update_bn(iter(()), jaxgrad.nn.Linear(1, 1))  # no batch norm, no batch
