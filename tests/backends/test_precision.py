"""The precision of float32 products in programs for GPUs and TPUs, in each order of derivative."""

import re

import jax
import jax.numpy as jnp
import pytest

import jaxgrad as torch

F = torch.nn.functional
LAYERS = {
    name: getattr(torch.nn, name)(*sizes).requires_grad_(False)
    for name, sizes in {
        "RNN": (4, 4),
        "GRU": (4, 4),
        "LSTM": (4, 4),
        "MultiheadAttention": (4, 2),
        "TransformerEncoderLayer": (4, 2, 4, 0.0),
    }.items()
}
PRODUCTS = {
    "mm": lambda a: a @ a.T,
    "bmm": lambda a: torch.bmm(a[None], a[None]),
    "matmul": lambda a: torch.matmul(a.expand(2, 4, 4), a),
    "addmm": lambda a: torch.addmm(a, a, a, beta=0.5),
    "baddbmm": lambda a: torch.baddbmm(a[None], a[None], a[None]),
    "mv": lambda a: a @ a[0],
    "dot": lambda a: a[0] @ a[1],
    "linear": lambda a: F.linear(a, a, a[0]),
    "bilinear": lambda a: F.bilinear(a, a, a.expand(2, 4, 4)),
    "einsum": lambda a: torch.einsum("ij,kj,kl->il", a, a, a),
    "tensordot": lambda a: torch.tensordot(a, a, dims=2),
    "multi_dot": lambda a: torch.linalg.multi_dot([a, a, a]),
    "matrix_power": lambda a: torch.linalg.matrix_power(a, 3),
    "matrix_exp": torch.linalg.matrix_exp,
    "conv1d": lambda a: F.conv1d(a[None], a[:, :, None]),
    "conv2d": lambda a: F.conv2d(a[None, None], a[None, None, :2, :2]),
    "conv3d": lambda a: F.conv3d(a[None, None, None], a[None, None, None, :2, :2]),
    "conv_transpose2d": lambda a: F.conv_transpose2d(
        a[None, None], a[None, None, :2, :2], stride=2
    ),
    "attention": lambda a: F.scaled_dot_product_attention(a, a, a),
    "cdist": lambda a: torch.cdist(a, 2 * a + 1, compute_mode="use_mm_for_euclid_dist"),
    "affine_grid": lambda a: F.affine_grid(a[None, :2, :3], (1, 1, 2, 2), align_corners=False),
    "RNN": lambda a: LAYERS["RNN"](a)[0],
    "GRU": lambda a: LAYERS["GRU"](a)[0],
    "LSTM": lambda a: LAYERS["LSTM"](a)[0],
    "MultiheadAttention": lambda a: LAYERS["MultiheadAttention"](a, a, a)[0],
    "TransformerEncoderLayer": lambda a: LAYERS["TransformerEncoderLayer"](a),
    "inverse": torch.linalg.inv,
    "solve": lambda a: torch.linalg.solve(a, a.T),
    "cholesky": lambda a: torch.linalg.cholesky(a @ a.T),
    "determinant": torch.linalg.det,
    "svd": lambda a: torch.linalg.svd(a)[1],
    "eigh": lambda a: torch.linalg.eigh(a)[1],
    "qr": lambda a: torch.linalg.qr(a)[0],
    "pinv": torch.linalg.pinv,
}

ALWAYS_FULL = "cdist", "affine_grid", "matrix_exp", "determinant", "svd", "eigh"
# JAX's own products inside of these are
PARTLY_FULL = "cholesky", "qr", "pinv"

QUICK = "mm", "linear", "conv2d", "attention", "cdist", "einsum", "bilinear"


def products(function):
    """The lines of all products in the program of a function of a matrix, for GPUs and TPUs."""
    traced = jax.jit(torch.to_jax(function)).trace(jnp.ones((4, 4)))
    text = traced.lower(lowering_platforms=("cuda", "rocm", "tpu")).as_text()
    return re.findall(r"stablehlo\.(?:dot_general|convolution).*", text)


def precision(line):
    match = re.search(r"precision[_ a-z]*= \[(?:#stablehlo<precision )?(\w+)", line)
    return match[1] if match else "DEFAULT"


def with_derivatives(function):
    """A function that needs the value, the gradient, its derivatives in both modes."""

    def loss(a):
        return function(a).sin().sum()

    def slope(a):
        return torch.func.grad(loss)(a).cos().sum()

    def all_orders(a):
        forward = torch.func.jvp(torch.func.grad(loss), (a,), (a + 1,))[1]
        return loss(a), torch.func.grad(slope)(a), forward

    return all_orders


@pytest.fixture(autouse=True)
def as_before():
    known = jax.config.jax_default_matmul_precision
    yield
    torch.set_float32_matmul_precision("highest")
    jax.config.update("jax_default_matmul_precision", known)


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PRODUCTS],
)
def test_products_are_full_float32(name):
    lines = products(with_derivatives(PRODUCTS[name]))
    assert set(map(precision, lines)) == {"HIGHEST"}


def test_products_in_tf32():
    """XLA computes HIGH in TF32 on GPUs and in three products of bfloat16 on TPUs."""
    matmul = torch.backends.cuda.matmul
    for change, expected in (
        (lambda: setattr(matmul, "allow_tf32", True), "HIGH"),
        (lambda: setattr(matmul, "allow_tf32", False), "HIGHEST"),
        (lambda: setattr(matmul, "fp32_precision", "tf32"), "HIGH"),
        (lambda: setattr(torch.backends, "fp32_precision", "bf16"), "DEFAULT"),
        (lambda: setattr(torch.backends, "fp32_precision", "ieee"), "HIGHEST"),
        (lambda: torch.set_float32_matmul_precision("medium"), "DEFAULT"),
        (lambda: setattr(torch.backends, "fp32_precision", "none"), "HIGHEST"),
    ):
        change()
        for name in ("linear", "conv2d"):
            assert set(map(precision, products(PRODUCTS[name]))) == {expected}


@pytest.mark.slow
@pytest.mark.parametrize("name", PRODUCTS)
def test_derivatives_of_products_in_tf32(name):
    """But for what is always full: distances, grids, and products inside of decompositions."""
    torch.set_float32_matmul_precision("high")
    precisions = set(map(precision, products(with_derivatives(PRODUCTS[name]))))
    full = {"HIGHEST"} if name in (*ALWAYS_FULL, *PARTLY_FULL) else set()
    assert precisions == full | (set() if name in ALWAYS_FULL else {"HIGH"})


NARROWED = (
    *("linear", "bmm", "mm", "matmul", "addmm", "baddbmm", "einsum", "multi_dot", "mv", "dot"),
    *("conv1d", "conv2d", "conv3d", "conv_transpose2d", "attention", "LSTM", "MultiheadAttention"),
)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(name, dtype, marks=[pytest.mark.slow] if name not in QUICK else [])
        for name in NARROWED
        for dtype in ("bfloat16", "float16")
    ],
)
def test_products_under_autocast_are_half_precision(name, dtype):
    """Value and gradient: the factors are in half precision, and the input's gradient is wide."""

    def gradient(a):
        def loss(a):
            with torch.autocast("cpu", getattr(torch, dtype)):
                return PRODUCTS[name](a).sin().sum()

        return torch.func.grad(loss)(a)

    lines = products(gradient)
    narrow = {"bfloat16": "bf16", "float16": "f16"}[dtype]
    assert lines
    for line in lines:
        factors = rf"\(tensor<(?:\d+x)*{narrow}>, tensor<(?:\d+x)*{narrow}>\)"
        assert re.search(factors, line) and precision(line) == "DEFAULT"
    assert jax.eval_shape(torch.to_jax(gradient), jnp.ones((4, 4))).dtype == "float32"


@pytest.mark.slow
def test_a_step_with_scaled_gradients():
    """The scaler looks for infinities in the program, and selects what the step leaves."""
    model = torch.nn.Linear(4, 3)
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), torch.amp.GradScaler("cpu")

    def step(x):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = model(x).float().square().sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    traced = torch.jit(step).trace(torch.ones(2, 4))
    for platform in ("cuda", "rocm", "tpu"):
        text = traced.lower(lowering_platforms=(platform,)).as_text()
        assert "callback" not in text and "stablehlo.is_finite" in text
        lines = re.findall(r"stablehlo\.dot_general.*", text)
        assert lines and all("f16>, tensor<" in line for line in lines)


def test_settings_of_precision_follow_one_another():
    """The values are those of PyTorch 2.13."""
    backends, matmul = torch.backends, torch.backends.cuda.matmul

    def state():
        return torch.get_float32_matmul_precision(), matmul.allow_tf32, matmul.fp32_precision

    assert state() == ("highest", False, "none")
    for allowed, expected in ((True, ("high", True, "tf32")), (False, ("highest", False, "ieee"))):
        matmul.allow_tf32 = allowed
        assert state() == expected
    for name, expected in (
        ("high", ("high", True, "tf32")),
        ("medium", ("medium", True, "tf32")),
        ("highest", ("highest", False, "ieee")),
    ):
        torch.set_float32_matmul_precision(name)
        assert state() == expected
    for owner in (matmul, backends):
        for name in ("ieee", "tf32", "none"):
            owner.fp32_precision = name
            assert (owner.fp32_precision, matmul.fp32_precision) == (name, name)
        with pytest.raises(RuntimeError, match="Unknown precision: low"):
            owner.fp32_precision = "low"
    with pytest.raises(RuntimeError, match="'cuda' does not support precision 'bf16'"):
        matmul.fp32_precision = "bf16"
    with backends.mkldnn.flags(enabled=True, fp32_precision="tf32"):
        assert backends.mkldnn.enabled and backends.mkldnn.fp32_precision == "tf32"
    assert not backends.mkldnn.enabled and backends.mkldnn.fp32_precision == "none"
    parts = backends.cudnn, backends.cudnn.conv, backends.cudnn.rnn, backends.mkldnn.matmul
    assert [part.fp32_precision for part in parts] == ["none", "tf32", "tf32", "none"]
