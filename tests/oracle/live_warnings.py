"""Warnings of calls, with their categories, against the installed PyTorch.

make oracle ARGUMENTS="tests/oracle/live_warnings.py"
"""

import warnings

import numpy as np
import pytest
import torch

import jaxgrad

READ_ONLY = np.arange(3.0)
READ_ONLY.flags.writeable = False

# calls, in which t is the library, and the beginning of what both warn of; "" if neither warns
CALLS = {
    "t.optim.lr_scheduler.StepLR(sgd(t), 1).step()": "Detected call of `lr_scheduler.step()`",
    "t.optim.lr_scheduler.ExponentialLR(stepped(t), 0.5).step(3)": "The epoch parameter in",
    "t.optim.lr_scheduler.CosineAnnealingLR(stepped(t), 5).get_lr()": "To get the last learning",
    "t.optim.SGD([parameter(t)] * 2, lr=0.1)": "optimizer contains a parameter group with dupli",
    "t.from_numpy(READ_ONLY)": "The given NumPy array is not writable",
    "t.tensor([np.ones(2), np.ones(2)])": "Creating a tensor from a list of numpy.ndarrays is",
    "t.frombuffer(b'abcd', dtype=t.uint8)": "The given buffer is not writable",
    "t.tensor(t.ones(2))": "To copy construct from a tensor",
    "t.ones(1, requires_grad=True).mul(2).grad": "The .grad attribute of a Tensor that is not a le",
    "t.ones(1, requires_grad=True).sum().backward(create_graph=True)": "Using backward() with cre",
    "t.ones(2, dtype=t.complex64).float()": "Casting complex values to real discards the imag",
    "t.nn.functional.softmax(t.ones(2, 2))": "Implicit dimension choice for softmax has been",
    "t.nn.functional.log_softmax(t.ones(2, 2))": "Implicit dimension choice for log_softmax has",
    "t.nn.functional.mse_loss(t.ones(2, 1), t.ones(2))": "Using a target size",
    "t.nn.functional.l1_loss(t.ones(2, 1), t.ones(2))": "Using a target size",
    "t.nn.functional.kl_div(t.ones(2), t.ones(2))": "reduction: 'mean' divides the total loss by",
    "t.nn.MSELoss(size_average=True)": "size_average and reduce args will be deprecated",
    "t.nn.functional.upsample(t.ones(1, 1, 2, 2), scale_factor=2)": "`nn.functional.upsample` is",
    "t.nn.functional.grid_sample(t.ones(1, 1, 2, 2), t.zeros(1, 2, 2, 2))": "Default grid_sample",
    "t.nn.functional.affine_grid(t.ones(1, 2, 3), (1, 1, 2, 2))": "Default grid_sample and affin",
    "t.nn.init.uniform(t.ones(3))": "`nn.init.uniform` is now deprecated in favor of",
    "t.nn.LSTM(2, 2, 1, dropout=0.5)": "dropout option adds dropout after all but last recurr",
    "t.nn.utils.clip_grad_norm([parameter(t)], 1.0)": "`torch.nn.utils.clip_grad_norm` is now",
    "t.nn.InstanceNorm1d(3)(t.ones(1, 2, 4))": "input's size at dim=1 does not match num_features",
    "t.nn.NLLLoss2d()": "`NLLLoss2d` has been deprecated",
    "t.nn.Container()": "`nn.Container` is deprecated",
    "hooked(t, t.nn.Linear(2, 2))": "Using a non-full backward hook when the forward contains",
    "hooked(t, t.nn.ReLU())": "Using a non-full backward hook when the forward contains",
    "t.meshgrid(t.ones(2), t.ones(2))": "torch.meshgrid: in an upcoming release, it will be req",
    "t.range(0, 2)": "torch.range is deprecated and will be removed in a future release",
    "t.chain_matmul(t.eye(2), t.eye(2))": "torch.chain_matmul is deprecated and will be removed",
    "t.cholesky(t.eye(2))": "torch.cholesky is deprecated in favor of torch.linalg.cholesky",
    "t.eye(2).qr()": "torch.qr is deprecated in favor of torch.linalg.qr",
    "t.lu(t.eye(2))": "torch.lu is deprecated in favor of torch.linalg.lu_factor",
    "t.triangular_solve(t.eye(2), t.eye(2))": "torch.triangular_solve is deprecated in favor of",
    "t.lu_solve(t.eye(2), *t.linalg.lu_factor(t.eye(2)))": "torch.lu_solve is deprecated in fav",
    "t.cross(t.eye(3), t.eye(3))": "Using torch.cross without specifying the dim arg is depre",
    "t.cross(t.eye(3), t.eye(3), 1)": "",
    "t.zeros(1).scatter(0, t.zeros(1).long(), t.ones(1), reduce='add')": "The reduce argument of",
    "t.ones(1, 2, 3).T": "The use of `x.T` on tensors of dimension other than 2 to reverse their",
    "t.tensor(1.0).T": "Tensor.T is deprecated on 0-D tensors",
    "t.ones(1).std()": "std(): degrees of freedom is <= 0. Correction should be strictly less than",
    "t.var_mean(t.ones(3), correction=3.5)": "var_mean(): degrees of freedom is <= 0. Correction",
    "t.var(t.ones(3), correction=2.5)": "",
    "t.nn.functional.conv1d(t.ones(1, 1, 4), t.ones(1, 1, 2), padding='same')": "Using padding='sa",
    "t.nn.Hardtanh(min_value=-2.0)": "keyword argument `min_value` is deprecated and renamed to",
    "t.ones(2)[t.tensor([1, 0], dtype=t.uint8)]": "indexing with dtype torch.uint8 is now deprec",
    "t.where(t.ones(1, dtype=t.uint8), t.ones(1), 0.0)": "where received a uint8 condition",
    "t.ones(2).resize(2)": "non-inplace resize is deprecated",
    "t.cov(t.ones(1))": "cov(): degrees of freedom is <= 0",
    "t.set_default_tensor_type(t.FloatTensor)": "torch.set_default_tensor_type() is deprecated",
    "t.has_mps": "'has_mps' is deprecated, please use 'torch.backends.mps.is_built()'",
    "t.cuda.amp.autocast(enabled=False)": "`torch.cuda.amp.autocast(args...)` is deprecated",
    "t.cuda.amp.GradScaler(enabled=False)": "`torch.cuda.amp.GradScaler(args...)` is deprecated",
    "t.cuda.amp.custom_fwd(print)": "`torch.cuda.amp.custom_fwd(args...)` is deprecated",
    "t.cpu.amp.autocast()": "`torch.cpu.amp.autocast(args...)` is deprecated",
    "t.nn.utils.stateless.functional_call(t.nn.Identity(), {}, (1,))": "`torch.nn.utils.stateless",
    "list(t.utils.data.DataLoader([1.0], pin_memory=True))": "'pin_memory' argument is set as tr",
    "t.add(t.ones(2), t.ones(2), alpha=2)": "",
    "t.nn.TransformerEncoder(t.nn.TransformerEncoderLayer(2, 1), 1)": "enable_nested_tensor is T",
    "t.ones(1).add_(2, t.ones(1))": "This overload of add_ is deprecated",
    "t.ones(1, 1).addmm_(2, 3, t.eye(1), t.eye(1))": "This overload of addmm_ is deprecated",
    "t.tensor(READ_ONLY)": "",
    "t.add(t.ones(3), 1, out=t.ones(2))": "An output with one or more elements was resized",
    "t.max(t.eye(2), 0, out=(t.ones(1), t.ones(1).long()))": "An output with one or more elements",
    "t.cat([t.ones(2)], out=t.ones(3))": "An output with one or more elements was resized",
    "t.add(t.ones(3), 1, out=t.empty(0))": "",
    "t.arange(3, out=t.ones(2))": "The number of elements in the out tensor of shape",
    "t.nn.functional.dropout2d(t.ones(2, 3, 4))": "dropout2d: Received a 3D input to dropout2d and",
    "t.nn.functional.dropout3d(t.ones(2, 3))": "dropout3d: Received a 2-D input to dropout3d, whic",
    "t.amp.autocast('cuda')": "CUDA is not available or torch_xla is imported. Disabling autocast",
    "t.backends.cuda.sdp_kernel()": "`torch.backends.cuda.sdp_kernel()` is deprecated",
    "t.get_autocast_cpu_dtype()": "torch.get_autocast_cpu_dtype() is deprecated. Please use torch.",
    "t.get_autocast_gpu_dtype()": "torch.get_autocast_gpu_dtype() is deprecated. Please use torch.",
    "t.is_autocast_cpu_enabled()": "torch.is_autocast_cpu_enabled() is deprecated. Please use",
    "t.set_autocast_cpu_enabled(False)": "torch.set_autocast_cpu_enabled(enabled) is deprecated",
    "t.set_autocast_cpu_dtype(t.bfloat16)": "torch.set_autocast_cpu_dtype(dtype) is deprecated",
    "t.set_autocast_gpu_dtype(t.float16)": "torch.set_autocast_gpu_dtype(dtype) is deprecated",
    "t.set_autocast_enabled(False)": "",
    "t.optim.lr_scheduler.MultiStepLR(stepped(t), [1]).get_lr()": "To get the last learning rate",
    "t.optim.lr_scheduler.CosineAnnealingWarmRestarts(stepped(t), 5).step(2)": "",
    "t.optim.swa_utils.SWALR(stepped(t), 0.1).get_lr()": "To get the last learning rate computed",
    "t.nn.Softmax()(t.eye(2))": "Implicit dimension choice for softmax has been deprecated",
    "t.nn.functional.huber_loss(t.ones(2), t.ones(2, 1))": "Using a target size",
    "t.nn.functional.upsample_nearest(t.ones(1, 1, 2, 2), 4)": "`nn.functional.upsample_nearest`",
    "t.nn.functional.mse_loss(t.ones(2), t.ones(2), reduction='elementwise_mean')": "reduction='el",
    "t.nn.functional.gumbel_softmax(t.ones(2), eps=1e-5)": "`eps` parameter is deprecated",
    "t.nn.init.kaiming_uniform_(t.empty(0, 2))": "Initializing zero-element tensors is a no-op",
    "t.nn.init.trunc_normal_(t.empty(2), mean=5)": "mean is more than 2 std from [a, b]",
    "t.nn.Linear(0, 3)": "Initializing zero-element tensors is a no-op",
    "t.nn.Linear(1, 1).state_dict({}, '', False)": "Positional args are being deprecated, use kwar",
    "t.nn.Linear(1, 1).to(t.complex64)": "Complex modules are a new feature under active develop",
    "t.nn.utils.weight_norm(t.nn.Linear(1, 1))": "`torch.nn.utils.weight_norm` is deprecated in",
    "t.nn.utils.clip_grad_norm_([], 1.0)": "",
    "t.utils.checkpoint.checkpoint(abs, t.ones(2), use_reentrant=True)": "None of the inputs have ",
    "t.utils.data.DataLoader([1], num_workers=100)": "This DataLoader will create 100 worker proce",
    "t.autograd.gradcheck(abs, t.ones(1, requires_grad=True), raise_exception=False)": "Input #0 r",
    "t.stft(t.ones(20), 4, return_complex=True)": "A window was not provided. A rectangular window",
    "t.testing.assert_allclose(t.ones(1), t.ones(1))": "`torch.testing.assert_allclose()` is depre",
    "t.distributions.Wishart(t.tensor(1.5), t.eye(2))": "Low df values detected",
}


def parameter(t):
    return t.nn.Parameter(t.ones(2))


def sgd(t):
    return t.optim.SGD([parameter(t)], lr=0.1)


def stepped(t):
    optimizer = sgd(t)
    optimizer.step()
    return optimizer


def hooked(t, module):
    module.register_backward_hook(lambda *arguments: None)
    module(t.ones(1, 2, requires_grad=True))


@pytest.fixture(autouse=True)
def all_warnings():
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


def warnings_of(library, call) -> set:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        eval(call, globals() | {"t": library})
    return {(warning.category, str(warning.message)) for warning in caught}


@pytest.mark.parametrize("call", CALLS)
def test_warnings(call):
    ours, theirs = warnings_of(jaxgrad, call), warnings_of(torch, call)
    begin = CALLS[call]
    if not begin:
        assert not ours and not theirs
        return
    for caught in (ours, theirs):
        assert [text for _, text in caught if text.startswith(begin)], caught
    ours, theirs = (
        {kind for kind, text in caught if text.startswith(begin)} for caught in (ours, theirs)
    )
    assert ours == theirs
