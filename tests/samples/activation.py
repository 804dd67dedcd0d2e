"""Activations."""

import math

from samples import Dtype, Int, S, T, samples_of

NAN, INF = float("nan"), float("inf")
EDGES = [-1.0, 0.0, 1.0, 2.0]
TAILS = [-30.0, -3.0, 0.0, 3.0, 30.0]
PARAMETERLESS = "relu leaky_relu hardtanh silu softplus logsigmoid gelu relu6 elu selu celu"
ALL = " ".join(f"nn.functional.{name}" for name in PARAMETERLESS.split())
SOFT = "softmax log_softmax"
SOFT_BACKWARD = "ops._softmax_backward_data ops._log_softmax_backward_data"
BUFFER = T(values=[math.exp(-0.3), math.exp(-1.2)], constant=True)
FLOAT64 = Dtype("float64")
PIECES = "hardsigmoid hardswish hardshrink softshrink mish"
MORE = " ".join(f"nn.functional.{name}" for name in PIECES.split())
BENDS = [-4.0, -3.0, -0.5, 0.0, 0.5, 3.0, 4.0]

SAMPLES = [
    *samples_of(ALL, T(2, 3)),
    *samples_of(ALL, T()),
    *samples_of(ALL, T(0, 3)),
    *samples_of(ALL, T(values=TAILS), kink=True),
    *samples_of(ALL, T(values=[NAN]), kink=True),
    *samples_of(ALL, input=T(2)),
    S("relu", T(3)),
    *samples_of("relu Tensor.relu nn.functional.hardtanh", Int(3, low=-3)),
    # straight pieces
    S("threshold", T(2, 3), 0.25, 1.5),
    S("nn.functional.threshold", T(2, 3), -0.75, value=-2.0),
    S("threshold", T(values=EDGES), 1, 5, kink=True),
    S("threshold", T(values=[NAN, 3.0]), threshold=2.5, value=0.5, kink=True),
    S("threshold", Int(4), 3, 7),
    S("ops.threshold_backward", T(2, 3), T(2, 3), 0.25),
    S("ops.threshold_backward", T(4), T(values=EDGES), 1, kink=True),
    S("nn.functional.leaky_relu", T(2, 3), 0.3),
    S("nn.functional.leaky_relu", T(2, 3), negative_slope=-1.5),
    S("nn.functional.leaky_relu", T(values=EDGES), 2, kink=True),
    S("ops.leaky_relu_backward", T(2, 3), T(2, 3), 0.3, False),
    S("ops.leaky_relu_backward", T(2, 3), T(2, 3), 0.3, True),
    S("ops.leaky_relu_backward", T(4), T(values=EDGES), 2, False, kink=True),
    S("nn.functional.hardtanh", T(2, 3), -0.75, 0.25),
    S("nn.functional.hardtanh", T(2, 3), max_val=0.75, min_val=-1.25),
    S("nn.functional.hardtanh", T(values=EDGES), kink=True),
    S("nn.functional.relu6", T(values=[0.0, 6.0, 7.0]), kink=True),
    S("ops.hardtanh_backward", T(2, 3), T(2, 3), -0.75, 0.25),
    S("ops.hardtanh_backward", T(4), T(values=EDGES), -1, 1, kink=True),
    # smooth ones
    S("nn.functional.silu", T(2, 3, constant=True), complex="only"),
    S("ops.silu_backward", T(2, 3, constant=True), T(2, 3, constant=True)),
    S("nn.functional.softplus", T(2, 3), 2.5, 1.1),
    S("nn.functional.softplus", T(2, 3), beta=0.7, threshold=3),
    S("nn.functional.softplus", T(values=[0.25, 0.5, 1.0]), 2, 1, kink=True),
    S("ops.softplus_backward", T(2, 3), T(2, 3), 2.5, 1.1),
    S("ops.softplus_backward", T(), T(), 1, 20),
    S("nn.functional.gelu", T(2, 3), approximate="tanh"),
    S("nn.functional.gelu", T(values=TAILS), approximate="tanh", kink=True),
    S("ops.gelu_backward", T(2, 3), T(2, 3)),
    S("ops.gelu_backward", T(2, 3), T(2, 3), approximate="tanh"),
    S("nn.functional.elu", T(2, 3), 1.7),
    S("nn.functional.elu", T(values=EDGES), alpha=-2.0, kink=True),
    S("nn.functional.celu", T(2, 3), alpha=-0.5),
    S("nn.functional.celu", T(values=EDGES), 2.0, kink=True),
    *samples_of("ops.elu_backward", T(2, 3), 1.7, 1.2, 0.8, False, T(2, 3)),
    *samples_of("ops.elu_backward", T(2, 3), 1.7, 1.2, 0.8, True, T(2, 3)),
    *samples_of("ops.elu_backward", T(4), 1.7, 1, 2, False, T(values=EDGES), kink=True),
    *samples_of("ops.elu_backward", T(4), 1.7, 1, 2, True, T(values=EDGES), kink=True),
    S("ops.log_sigmoid_forward", T(2, 3)),
    S("ops.log_sigmoid_backward", T(2), T(values=[0.3, -1.2]), BUFFER),
    *samples_of(MORE, T(2, 3, low=-4, high=4)),
    *samples_of(MORE, T(values=BENDS), kink=True),
    *samples_of("nn.functional.softsign nn.functional.tanhshrink", T(2, 3)),
    *samples_of("hardshrink Tensor.hardshrink", T(2, 3), 0.7),
    S("celu", T(2, 3), 0.5),
    *samples_of("selu nn.functional.selu", T(values=EDGES), kink=True),
    S("ops.hardshrink_backward", T(2, 3), T(2, 3), 0.7),
    S("ops.softshrink_backward", T(2, 3), T(2, 3), 0.7),
    S("ops.hardsigmoid_backward", T(2, 3), T(2, 3, low=-4, high=4, constant=True)),
    S("ops.hardswish_backward", T(2, 3), T(2, 3, low=-4, high=4)),
    S("ops.mish_backward", T(2, 3), T(2, 3)),
    S("nn.functional.glu", T(2, 4)),
    S("nn.functional.glu", T(4, 1, 2), dim=0),
    S("nn.functional.glu", T(0, 2), -1),
    S("ops.glu_backward", T(2, 2), T(2, 4), 1),
    S("ops.glu_backward", T(1, 2), T(2, 2), -2),
    # slopes of channels, random slopes
    *samples_of("prelu nn.functional.prelu", T(2, 3), T(3)),
    *samples_of("prelu", T(2, 3, 2), T(1)),
    *samples_of("prelu", T(), T()),
    S("Tensor.prelu", T(2, 3, 1, 2), T(3)),
    S("prelu", T(values=EDGES), T(values=[0.7]), kink=True),
    S("ops._prelu_kernel", T(2, 3), T(2, 1)),
    S("ops._prelu_kernel_backward", T(2, 3), T(2, 3), T(3)),
    *samples_of("rrelu nn.functional.rrelu", T(2, 3), 0.1, 0.4),
    S("ops._rrelu", T(2, 3), T(2, 3, low=0.1, constant=True), 0.1, 0.4, True),
    S("ops.rrelu_with_noise_backward", T(4), T(4), T(4, constant=True), 0.1, 0.4, True, False),
    S("ops.rrelu_with_noise_backward", T(4), T(4), T(4, constant=True), 0.1, 0.4, False, False),
    # softmax and its logarithm
    *samples_of(SOFT, T(2, 3), 0),
    *samples_of(SOFT, T(2, 3), 1),
    *samples_of(SOFT, T(2, 3, 2), -2),
    *samples_of(SOFT, T(), 0),
    *samples_of(SOFT, T(), -1),
    *samples_of(SOFT, T(2, 0), 1),
    *samples_of(SOFT, T(0, 3), 1),
    *samples_of(SOFT, T(3), 0, FLOAT64),
    *samples_of(SOFT, Int(2, 3), 1, dtype=FLOAT64),
    *samples_of(SOFT, T(values=[1000.0, 0.0, -1000.0]), 0, kink=True),
    *samples_of(SOFT, T(values=[-INF, 0.0, 1.0]), 0, kink=True),
    *samples_of(SOFT, T(values=[-INF, -INF]), 0, kink=True),
    *samples_of(SOFT, T(values=[INF, 0.0]), 0, kink=True),
    *samples_of(SOFT, input=T(2, 3), dim=1),
    *samples_of("Tensor.softmax Tensor.log_softmax", T(2, 3), 1),
    *samples_of("nn.functional.softmax nn.functional.log_softmax", T(2, 3), dim=-1),
    *samples_of("nn.functional.softmin", T(2, 3), dim=0),
    *samples_of("ops._softmax ops._log_softmax", T(2, 3), 1, False),
    *samples_of("ops._softmax ops._log_softmax", T(), 0, False),
    *samples_of(SOFT_BACKWARD, T(2, 3), T(2, 3), 1, FLOAT64),
    *samples_of(SOFT_BACKWARD, T(2, 3), T(2, 3), 0, FLOAT64),
    *samples_of(SOFT_BACKWARD, T(), T(), -1, FLOAT64),
]
