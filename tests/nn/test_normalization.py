"""Normalization layers against PyTorch."""

import pytest
from helpers.layers import derivatives, in_float64, irregular, of_layer

import jaxgrad


@in_float64
def test_layer_norm_rms_norm_group_norm_and_instance_norm(torch):
    nn, x = torch.nn, irregular(torch, 2, 4, 3)
    return [
        of_layer(torch, nn.LayerNorm(3), x.detach(), second=True),
        of_layer(torch, nn.LayerNorm((4, 3), bias=False), x.detach()),
        of_layer(torch, nn.RMSNorm(3, eps=1e-3), x.detach()),
        of_layer(torch, nn.GroupNorm(2, 4), x.detach()),
        of_layer(torch, nn.InstanceNorm1d(4), x.detach()),
        nn.LayerNorm(3, elementwise_affine=False)(x.half()),
    ]


@pytest.mark.slow
@in_float64
def test_batch_norm_and_its_running_statistics(torch):
    nn, x = torch.nn, irregular(torch, 3, 2, 2, 2)
    layer = nn.BatchNorm2d(2, momentum=0.3)
    results = [of_layer(torch, layer, x.detach(), second=True)]
    layer(x * 2 + 1)
    results.append(list(layer.state_dict().values()))
    layer.eval()
    x.requires_grad_()
    results.append(derivatives(torch, layer, x))
    layer.reset_running_stats()
    results.append(list(layer.buffers()))
    mean_of_all = nn.BatchNorm1d(2, momentum=None, affine=False)
    for step in range(3):
        mean_of_all(irregular(torch, 4, 2, first=step))
    results.append(list(mean_of_all.buffers()))
    alone = nn.BatchNorm1d(2, track_running_stats=False).eval()
    results.append(alone(irregular(torch, 4, 2)).detach())
    tracked = nn.InstanceNorm1d(2, affine=True, track_running_stats=True)
    tracked(irregular(torch, 3, 2, 4))
    return results, list(tracked.buffers())


@pytest.mark.slow
@in_float64
def test_local_response_norm_and_sync_batch_norm(torch):
    nn, x = torch.nn, irregular(torch, 2, 4, 3)
    local = of_layer(torch, nn.LocalResponseNorm(3, alpha=0.5, k=2.0), x.detach())
    plain = nn.Sequential(nn.BatchNorm1d(4, momentum=0.3), nn.Sequential(nn.BatchNorm1d(4)))
    plain[0](x)
    same = nn.SyncBatchNorm.convert_sync_batchnorm(plain)
    kept = same[0].running_mean.tolist(), same[0].weight is plain[0].weight
    same.eval()
    return local, kept, repr(same), same(x).detach(), repr(nn.SyncBatchNorm(3, affine=False))


def test_cross_map_normalization():
    # the neighbours of channel c are those from c - (size - 1) // 2 to c + (size - 1) // 2
    x = jaxgrad.tensor([1.0, 2.0, -3.0, 4.0], dtype=jaxgrad.float64).reshape(1, 4, 1, 1)
    sums = {2: [1, 4, 9, 16], 3: [5, 14, 29, 25], 4: [5, 14, 29, 25], 5: [14, 30, 30, 29]}
    for size, squares in sums.items():
        layer = jaxgrad.nn.CrossMapLRN2d(size, alpha=0.3, beta=0.6, k=1.5)
        expected = [
            v / (1.5 + 0.3 / size * s) ** 0.6 for v, s in zip((1, 2, -3, 4), squares, strict=True)
        ]
        assert layer(x).flatten().tolist() == pytest.approx(expected, rel=1e-12)
    assert repr(jaxgrad.nn.CrossMapLRN2d(3)) == "CrossMapLRN2d(3, alpha=0.0001, beta=0.75, k=1)"
    with pytest.raises(ValueError, match="CrossMapLRN2d: Expected input to be 4D, got 3D instead"):
        jaxgrad.nn.CrossMapLRN2d(3)(x[0])


@pytest.mark.parametrize("version", [1, None])
def test_states_of_early_versions_have_no_count_of_batches(version):
    norm = jaxgrad.nn.BatchNorm2d(3)
    state = norm.state_dict()
    assert state._metadata[""]["version"] == 2
    del state["num_batches_tracked"]
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        norm.load_state_dict(state)
    state._metadata[""]["version"] = version
    norm.load_state_dict(state)
    assert norm.num_batches_tracked.item() == 0


def test_batches_are_not_counted_without_tracking():
    norm = jaxgrad.nn.BatchNorm1d(2)
    norm.track_running_stats = False
    norm(jaxgrad.tensor([[1.0, 2.0], [3.0, 5.0]]))
    assert norm.num_batches_tracked.item() == 0
    assert norm.running_mean.tolist() == [0, 0] and norm.running_var.tolist() == [1, 1]


@pytest.mark.parametrize("missing", ("running_mean", "running_var"))
def test_evaluation_needs_both_running_statistics(missing):
    statistics = {"running_mean": jaxgrad.ones(2), "running_var": jaxgrad.ones(2), missing: None}
    with pytest.raises(RuntimeError, match=f"{missing} must be defined in evaluation mode"):
        jaxgrad.nn.functional.batch_norm(jaxgrad.ones(3, 2), **statistics)


def test_root_mean_square_over_more_dimensions_than_there_are():
    with pytest.raises(ValueError, match="Input tensor must have at least 2 dimensions"):
        jaxgrad.nn.functional.rms_norm(jaxgrad.ones(3), (2, 3))


@pytest.mark.parametrize("shape", [(2, 0), (0, 2, 3)])
def test_batch_norm_of_empty_inputs_asks_for_no_channels(shape):
    """As in PyTorch 2.13, where statistics stay and the gradient of the weight is 0."""
    layer, x = jaxgrad.nn.BatchNorm1d(3), jaxgrad.zeros(shape, requires_grad=True)
    result = layer(x)
    result.sum().backward()
    assert result.shape == x.grad.shape == shape
    assert layer.weight.grad.tolist() == layer.running_mean.tolist() == [0, 0, 0]
    assert layer.num_batches_tracked.item() == 1


def test_an_empty_batch_has_any_dtype():
    """As in PyTorch, where its elements are not read."""
    norm = jaxgrad.nn.BatchNorm2d(3)
    x = jaxgrad.zeros(0, 3, 2, 2, dtype=jaxgrad.float64, requires_grad=True)
    result = norm(x)
    result.sum().backward()
    assert result.shape == x.grad.shape == x.shape and result.dtype == x.grad.dtype == x.dtype
    assert norm.weight.grad.tolist() == [0, 0, 0] and norm.weight.grad.dtype == jaxgrad.float32
    assert norm.running_mean.tolist() == [0, 0, 0] and norm.running_var.tolist() == [1, 1, 1]


@pytest.mark.parametrize("statistics", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_instance_norm_takes_statistics_of_any_dtype(dtype, statistics):
    """They keep their dtype, as in PyTorch: 0.1 times the means of 0 to 5 and 6 to 11."""
    norm = jaxgrad.nn.functional.instance_norm
    x = jaxgrad.arange(12.0).reshape(1, 2, 6).to(getattr(jaxgrad, dtype))
    mean = jaxgrad.zeros(2, dtype=getattr(jaxgrad, statistics))
    result = norm(x, mean, jaxgrad.ones_like(mean))
    assert (result.dtype, mean.dtype) == (x.dtype, getattr(jaxgrad, statistics))
    assert mean.tolist() == pytest.approx([0.25, 0.85], rel=4e-3)
    zeros, ones = mean * 0, jaxgrad.ones_like(mean)
    assert norm(x, zeros, ones, use_input_stats=False, eps=0.0).tolist() == x.tolist()
