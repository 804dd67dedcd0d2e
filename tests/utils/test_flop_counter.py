"""Operations that are counted are as many as PyTorch counts, operator by operator."""

import importlib

import pytest
from helpers.as_torch import as_torch

import jaxgrad


def counter(torch):
    module = importlib.import_module(f"{torch.__name__}.utils.flop_counter")
    return module.FlopCounterMode(display=False)


@as_torch("{'Sequential.0': 41472, 'Sequential': 49152, 'Global': 49152, 'Sequential.3': 7680}")
def test_a_network(torch):
    """Forward and backward pass, by module: PyTorch runs `addmm` and `mm` for a linear layer."""
    nn = torch.nn
    layers = nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(128, 5)
    model, x = nn.Sequential(*layers), torch.ones(2, 3, 4, 4, requires_grad=True)
    with counter(torch) as counted:
        model(x).sum().backward()
    counts = counted.get_flop_counts()
    return {name: sum(operators.values()) for name, operators in counts.items()}


@as_torch("""
    [1152, 3456]
    [8640, 25920]
    [19440, 58320]
    [2592, 7776]
    [144, 432]
""")
def test_layers(torch):
    """The operations of `forward`, and with those of `backward`."""
    nn, results = torch.nn, []
    for layer, shape in (
        (nn.Conv1d(4, 6, 3, stride=2), (2, 4, 9)),
        (nn.ConvTranspose2d(3, 5, 3, stride=2), (2, 3, 4, 4)),
        (nn.Conv2d(3, 5, 3), (2, 3, 8, 8)),
        (nn.Conv3d(2, 3, 2, padding=1, stride=2), (1, 2, 5, 5, 5)),
        (nn.Linear(4, 6), (3, 4)),
    ):
        with counter(torch) as counted:
            output = layer(torch.ones(shape, requires_grad=True))
            forward = counted.get_total_flops()
            output.sum().backward()
        results.append((forward, counted.get_total_flops()))
    return results


@as_torch("3600")
def test_products(torch):
    a, b = torch.ones(2, 3, 4, requires_grad=True), torch.ones(2, 4, 5, requires_grad=True)
    with counter(torch) as counted:
        results = [torch.bmm(a, b), a @ b, torch.baddbmm(torch.ones(5), a, b)]
        results += [torch.einsum("bij,bjk->bik", a, b), a[0] @ b[0], torch.mm(a[0], b[1])]
        sum(result.sum() for result in results).backward()
        (a * 2 + torch.exp(a)).sum().backward()
    return counted.get_total_flops()


@as_torch("20160")
def test_attention(torch):
    torch.manual_seed(0)
    layer, x = torch.nn.MultiheadAttention(8, 2), torch.ones(5, 2, 8, requires_grad=True)
    with counter(torch) as counted:
        layer(x, x, x)[0].sum().backward()
    return counted.get_total_flops()


def test_groups_of_a_convolution():
    """PyTorch counts the gradient of a grouped weight as that of a whole one: 1728."""
    layer, x = jaxgrad.nn.Conv1d(4, 6, 3, groups=2), jaxgrad.ones(2, 4, 6, requires_grad=True)
    with counter(jaxgrad) as counted:
        layer(x).sum().backward()
    forward = 2 * (2 * 6 * 4) * (2 * 3)  # elements of the result, and the products of one
    assert counted.get_total_flops() == 3 * forward


def test_the_table(capsys):
    from jaxgrad.utils.flop_counter import FlopCounterMode

    model = jaxgrad.nn.Sequential(jaxgrad.nn.Linear(3, 4, bias=False))
    with FlopCounterMode() as counted:
        model(jaxgrad.ones(2, 3))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[2:] == [
        ["Sequential", "48", "100.00%"],
        ["-", "aten.mm", "48", "100.00%"],
        ["Sequential.0", "48", "100.00%"],
        ["-", "aten.mm", "48", "100.00%"],
    ]
    assert counted.flop_counts["Global"][jaxgrad.ops.aten.mm] == 48


@as_torch("""
    {'addmm': 32, 'mm': 64}
    {'mm': 96}
    {'addmm': 288, 'mm': 576}
    {'mm': 144}
    {'bmm': 144}
    {'bmm': 576}
    {'mm': 144}
    {'addmm': 48, 'mm': 96}
    {'convolution': 288, 'convolution_backward': 576}
    {'addmm': 640, 'bmm': 1200, 'mm': 1280}
""")
def test_names_of_products(torch):
    """By the operators of PyTorch the operations of layers and products, forwards and backwards."""
    nn, F = torch.nn, torch.nn.functional

    def ones(*shape):
        return torch.ones(*shape, requires_grad=True)

    attention = nn.MultiheadAttention(4, 2)
    cases = [
        lambda: nn.Linear(4, 2)(ones(2, 4)),
        lambda: nn.Linear(4, 2, bias=False)(ones(2, 4)),
        lambda: nn.Linear(4, 6)(ones(2, 3, 4)),
        lambda: ones(2, 3) @ ones(3, 4),
        lambda: torch.bmm(ones(2, 2, 3), ones(2, 3, 2)),
        lambda: ones(2, 2, 2, 3) @ ones(2, 2, 3, 4),
        lambda: torch.mm(ones(2, 3), ones(3, 4)),
        lambda: torch.addmm(ones(4), ones(2, 3), ones(3, 4)),
        lambda: F.conv2d(ones(1, 2, 4, 4), ones(2, 2, 2, 2)),
        lambda: attention(*[ones(5, 1, 4)] * 3)[0],
    ]
    rows = []
    for case in cases:
        with counter(torch) as counted:
            case().sum().backward()
        counts = counted.get_flop_counts()["Global"]
        rows.append({str(key).split(".")[1]: counts[key] for key in sorted(counts, key=str)})
    return tuple(rows)


def test_an_error_ends_the_count():
    with pytest.raises(RuntimeError), counter(jaxgrad) as counted:
        jaxgrad.nn.Linear(3, 4)(jaxgrad.ones(2, 5))
    jaxgrad.ones(2, 2) @ jaxgrad.ones(2, 2)
    assert counted.get_total_flops() == 0


@as_torch("""
    {'aten.bmm': 7, 'aten.sin': 7, 'aten.cat': 5, 'aten.mm': 32}
    [[[[1, 2, 3], [1, 3, 4]], [1, 2, 4]], [[[1, 2, 4]], [1, 2, 4]], [[1.0], [0.0], [1.0, 0.0]]]
""")
def test_custom_mapping(torch):
    """What functions of the user count, and what they get."""
    module, calls = importlib.import_module(f"{torch.__name__}.utils.flop_counter"), []

    def of_shapes(*arguments, out_shape):
        calls.append((arguments, out_shape))
        return 7

    def of_tensors(tensors, dim=0, *, out_val):
        calls.append([tensor.tolist() for tensor in tensors] + [out_val.tolist()])
        return 5

    of_tensors._get_raw = True
    aten = torch.ops.aten
    mapping = {aten.bmm: of_shapes, aten.sin: of_shapes, aten.cat: of_tensors}
    with module.FlopCounterMode(display=False, custom_mapping=mapping) as counted:
        x = torch.bmm(torch.ones(1, 2, 3), torch.ones(1, 3, 4)).sin()
        torch.cat([torch.ones(1), torch.zeros(1)], 0)
        torch.mm(x[0], x[0].t())
    counts = counted.get_flop_counts()["Global"]
    return {str(operator): count for operator, count in counts.items()}, calls


def test_a_table_without_a_limit_of_its_depth():
    nn = jaxgrad.nn
    model = nn.Sequential(nn.Sequential(nn.Sequential(nn.Linear(2, 2))))
    counter_of = importlib.import_module("jaxgrad.utils.flop_counter").FlopCounterMode
    with counter_of(display=False, depth=None) as counter:
        model(jaxgrad.ones(1, 2))
    assert "Sequential.0.0.0" in counter.get_table()
    assert "Sequential.0" not in counter.get_table(1)
