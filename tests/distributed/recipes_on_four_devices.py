"""The program that test_recipes.py runs on four devices, in its own process; it prints its results.
The expected numbers are those of plain jax.numpy on one device, in float64.
"""

import json
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pipeline
import ring_attention
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn


def mesh_of(**axes):
    return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))


SEQUENCE, PIPE = mesh_of(sp=4), mesh_of(pp=4)
ALONG = P(None, None, "sp")


NUMBERS = np.random.default_rng(0)


def normal(*shape, dtype=np.float32):
    return NUMBERS.normal(size=shape).astype(dtype)


def four(*shape, dtype=np.float32):
    """Queries, keys, values, and weights of the result."""
    return [normal(*shape, dtype=dtype) for _ in range(4)]


def spread(array, mesh, spec):
    """A leaf that is sharded over a mesh."""
    tensor = array if torch.is_tensor(array) else torch.from_numpy(array)
    return jax.device_put(tensor.detach(), NamedSharding(mesh, spec)).requires_grad_()


def differences(results, wanted):
    """Of each tensor, the largest difference, relative to the largest number that is wanted."""
    pairs = zip(results, wanted, strict=True)
    pairs = [(a.detach().double().numpy(), np.asarray(b, np.float64)) for a, b in pairs]
    assert all(a.shape == b.shape for a, b in pairs)
    return [np.abs(a - b).max() / np.abs(b).max() for a, b in pairs]


def in_float64(function, *arrays):
    arrays = jax.tree.map(lambda x: np.asarray(x, np.float64), arrays, is_leaf=torch.is_tensor)
    with jax.enable_x64(True):
        arrays = jax.tree.map(jnp.asarray, arrays)
        return jax.tree.map(np.asarray, function(*arrays))


# ---- ring attention


def attention(queries, keys, values, causal):
    scores = jnp.einsum("...id,...jd->...ij", queries, keys) / np.sqrt(queries.shape[-1])
    if causal:
        scores = jnp.where(np.tri(scores.shape[-1], dtype=bool), scores, -jnp.inf)
    return jax.nn.softmax(scores) @ values


def attention_and_gradients(queries, keys, values, weights, causal):
    """Of the result's product with weights."""
    result, pull = jax.vjp(lambda *operands: attention(*operands, causal), queries, keys, values)
    return result, *pull(weights)


def attended(operator, arrays, mesh=SEQUENCE, spec=ALONG):
    """The result of an operator, and the gradients of its product with weights."""
    *inputs, weights = (spread(array, mesh, spec) for array in arrays)
    result = operator(*inputs)
    (result * weights.detach()).sum().backward()
    assert result._array.sharding.is_equivalent_to(NamedSharding(mesh, spec), result.ndim)
    return result, *(tensor.grad for tensor in inputs)


def compared(arrays, causal, **options):
    mesh, spec = options.get("mesh", SEQUENCE), options.get("spec", ALONG)
    operator = ring_attention.ring_attention(mesh, causal=causal, spec=spec)
    wanted = in_float64(lambda *operands: attention_and_gradients(*operands, causal), *arrays)
    return differences(attended(operator, arrays, **options), wanted)


def attentions():
    """Differences, by what is computed."""
    by_case = {}
    for causal in (True, False):
        for shape in ((1, 1, 4, 1), (2, 3, 20, 5), (1, 2, 64, 16)):
            by_case[f"{shape}, {causal}"] = compared(four(*shape), causal)
        both = {"mesh": mesh_of(dp=2, sp=2), "spec": P("dp", None, "sp")}
        by_case[f"with rows over another axis, {causal}"] = compared(
            four(4, 2, 10, 3), causal, **both
        )
    wider = [*four(2, 1, 12, 3)[:2], *four(2, 1, 12, 7)[:2]]
    return by_case | {"wider values": compared(wider, True)}


def second_derivatives():
    """Of a function of the gradients."""
    arrays = four(1, 2, 12, 3)[:3]

    def of_gradients(queries, keys, values):
        loss = lambda *operands: (attention(*operands, True) ** 2).sum()  # noqa: E731
        gradients = jax.grad(loss, (0, 1, 2))(queries, keys, values)
        return sum(jnp.sin(gradient).sum() for gradient in gradients)

    inputs = [spread(array, SEQUENCE, ALONG) for array in arrays]
    loss = (ring_attention.ring_attention(SEQUENCE)(*inputs) ** 2).sum()
    gradients = torch.autograd.grad(loss, inputs, create_graph=True)
    results = torch.autograd.grad(sum(gradient.sin().sum() for gradient in gradients), inputs)
    return differences(results, in_float64(jax.grad(of_gradients, (0, 1, 2)), *arrays))


def attentions_in_float64():
    """Also for scores of thousands, whose exp overflows."""
    arrays = four(2, 2, 16, 4, dtype=np.float64)
    large = [array * factor for array, factor in zip(arrays, (40, 50, 1, 1), strict=True)]
    return compared(arrays, True) + compared(large, False)


def attention_in_bfloat16():
    """By how much numbers differ by more than half a bit, relative to the largest number."""
    arrays = [torch.from_numpy(array).bfloat16() for array in four(2, 2, 64, 8)]
    exact = [tensor.double().numpy() for tensor in arrays]
    results = attended(ring_attention.ring_attention(SEQUENCE), arrays)
    assert {result.dtype for result in results} == {torch.bfloat16}
    wanted = in_float64(lambda *operands: attention_and_gradients(*operands, True), *exact)
    pairs = zip([result.detach().double().numpy() for result in results], wanted, strict=True)
    return [(np.abs(a - b) - np.abs(b) * 2.0**-8).max() / np.abs(b).max() for a, b in pairs]


class Backwards(ring_attention.Ring):
    """A ring whose blocks go round the wrong way."""

    def __init__(self, *options):
        super().__init__(*options)
        self.neighbours = [(after, before) for before, after in self.neighbours]


class Unsent(ring_attention.Ring):
    """A ring that does not send the gradients of a block with the block."""

    def send(self, arrays):
        return list(arrays) if isinstance(arrays, list) else super().send(arrays)


def mapped(function):
    return torch.from_jax(
        jax.shard_map(function, mesh=SEQUENCE, in_specs=(ALONG,) * 3, out_specs=ALONG)
    )


def wrong_rings():
    arrays = four(2, 3, 20, 5)
    wanted = in_float64(lambda *operands: attention_and_gradients(*operands, True), *arrays)
    return {
        kind.__name__: differences(attended(mapped(kind("sp", 4, True).attend), arrays), wanted)
        for kind in (ring_attention.Ring, Backwards, Unsent)
    }


def layer_and_gradients(x, weight, causal=True):
    """Of an attention layer with two heads."""

    def loss(x, weight):
        three = (x @ weight).reshape(*x.shape[:2], 3, 2, -1)
        return (attention(*jnp.moveaxis(three, (2, 3), (0, 2)), causal) ** 2).mean()

    return jax.value_and_grad(loss, (0, 1))(x, weight)


def layer(operator):
    """A compiled step of that layer, on a sequence of 52 positions, and its arguments."""
    x, weight = spread(normal(1, 52, 6), SEQUENCE, P(None, "sp")), torch.from_numpy(normal(6, 48))

    @torch.jit
    def step(x, weight):
        x, weight = (tensor.detach().requires_grad_() for tensor in (x, weight))
        three = [part.unflatten(-1, (2, 8)).transpose(1, 2) for part in (x @ weight).chunk(3, -1)]
        loss = (operator(*three) ** 2).mean()
        loss.backward()
        return loss.detach(), x.grad, weight.grad

    return step, (x, weight)


def communication(text):
    """Which collective operations the text of a compiled program has."""
    names = "collective-permute", "all-gather", "all-to-all", "all-reduce"
    return {name: len(re.findall(rf"= [^=]*\b{name}(?:-start)?\(", text)) for name in names}


def kept(text):
    """Whether an array has the whole length, and whether one has the blocks of all steps."""
    return {
        "whole length": bool(re.search(r"\[(?:\d+,)*52(?:,\d+)*\]", text)),
        "all blocks": "f32[3,1,2,13,8]" in text,
    }


def layers():
    """Differences, the number of traces and the program, by how attention is computed."""
    ring = ring_attention.Ring("sp", 4, True)
    ways = {
        "ring": mapped(ring.attend),
        "rule of JAX": mapped(lambda *blocks: ring.forward(*blocks)[0]),
        "no ring": ring_attention.plain_attention,
    }
    by_way = {}
    for name, operator in ways.items():
        step, arguments = layer(operator)
        loss, gradients = in_float64(
            layer_and_gradients, *(argument.detach() for argument in arguments)
        )
        results = [step(*arguments) for _ in range(3)][-1]
        text = step.lower(*arguments).compile().as_text()
        by_way[name] = {
            "differences": differences(results, (loss, *gradients)),
            "traces": len(step.traces),
            **communication(text),
            **kept(text),
        }
    return by_way


# ---- the pipeline


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inward, self.outward = nn.Linear(width, 7), nn.Linear(7, width, bias=False)

    def forward(self, x):
        output = x + self.outward(torch.tanh(self.inward(x)))
        return output / output.norm(dim=-1, keepdim=True)  # whose derivative at zero is no number


BLOCK = Block(1).to("meta")


def stage(parameters, x):
    return torch.func.functional_call(BLOCK, parameters, (x,))


def stages_and_loss(stacked, x, y):
    for number in range(len(stacked["inward.weight"])):
        w, b, v = (stacked[name][number] for name in NAMES)
        x = x + jnp.tanh(x @ w.T + b) @ v.T
        x = x / jnp.linalg.norm(x, axis=-1, keepdims=True)
    return ((x - y) ** 2).mean()


NAMES = "inward.weight", "inward.bias", "outward.weight"


def stacked_parameters(count, width, mesh):
    torch.manual_seed(2)
    stacked, _ = torch.func.stack_module_state([Block(width) for _ in range(count)])
    return {name: spread(tensor, mesh, P("pp")) for name, tensor in stacked.items()}


def piped(microbatches, shape, mesh=PIPE, rows=None, order=None):
    """Differences of loss and gradients from those of the stages one after the other."""
    stacked = stacked_parameters(mesh.shape["pp"], shape[-1], mesh)
    x, y = spread(normal(*shape), mesh, P(rows)), torch.from_numpy(normal(*shape) * 2)
    operator = pipeline.pipeline(stage, mesh, microbatches, rows=rows)
    parameters = {
        name: tensor if order is None else tensor[order] for name, tensor in stacked.items()
    }
    loss = ((operator(parameters, x) - y) ** 2).mean()
    loss.backward()
    gradient = jax.value_and_grad(stages_and_loss, (0, 1))
    arrays = {name: tensor.detach() for name, tensor in stacked.items()}
    wanted = in_float64(gradient, arrays, x.detach(), y)
    by_name, of_x = wanted[1]
    results = loss, x.grad, *(stacked[name].grad for name in NAMES)
    return differences(results, (wanted[0], of_x, *(by_name[name] for name in NAMES)))


def pipelines():
    cases = (1, (3, 2)), (4, (8, 5)), (5, (10, 3)), (3, (6, 4, 5)), (8, (8, 2))
    by_case = {f"{m}, {shape}": piped(m, shape) for m, shape in cases}
    both = mesh_of(dp=2, pp=2)
    return by_case | {"with rows over another axis": piped(3, (12, 4), both, "dp")}


def descended(stacked, x, y):
    """The losses of four steps of gradient descent with momentum, and the last parameters."""
    losses, momentum = [], jax.tree.map(jnp.zeros_like, stacked)
    for _ in range(4):
        loss, gradients = jax.value_and_grad(stages_and_loss)(stacked, x, y)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
        stacked = jax.tree.map(lambda p, m: p - 0.1 * m, stacked, momentum)
        losses.append(loss)
    return jnp.stack(losses), *(stacked[name] for name in NAMES)


def trained():
    """Four compiled steps of training: differences, and the program."""
    stacked, operator = stacked_parameters(4, 5, PIPE), pipeline.pipeline(stage, PIPE, 6)
    x, y = torch.from_numpy(normal(12, 5)), torch.from_numpy(normal(12, 5) * 2)
    arrays = {name: tensor.detach().clone() for name, tensor in stacked.items()}
    wanted = in_float64(descended, arrays, x, y)
    optimizer = torch.optim.SGD(stacked.values(), lr=0.1, momentum=0.9)

    @torch.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(operator(stacked, x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    text = step.lower(x, y).compile().as_text()
    losses = torch.stack([step(x, y) for _ in range(4)])
    place = NamedSharding(PIPE, P("pp"))
    left = [(param, param.grad, *optimizer.state[param].values()) for param in stacked.values()]
    return {
        "differences": differences((losses, *(stacked[name] for name in NAMES)), wanted),
        "traces": len(step.traces),
        "ticks": set(map(int, re.findall(r"length=(\d+)", str(step.trace(x, y).jaxpr)))),
        "stays": [
            tensor._array.sharding.is_equivalent_to(place, tensor.ndim)
            for of in left
            for tensor in of
        ],
        "parameters of all ticks": "f32[9,7,5]" in text,
        **communication(text),
    }


def sums():
    """How many sums over devices a step on two pipelines has, and how many are in its loops."""
    mesh = mesh_of(dp=2, pp=2)
    stacked, x = stacked_parameters(2, 4, mesh), spread(normal(12, 4), mesh, P("dp"))
    operator = pipeline.pipeline(stage, mesh, 3, rows="dp")

    @torch.jit
    def step(x, *parameters):
        x, *parameters = leaves = [tensor.detach().requires_grad_() for tensor in (x, *parameters)]
        (operator(dict(zip(NAMES, parameters, strict=True)), x) ** 2).mean().backward()
        return [leaf.grad for leaf in leaves]

    text = step.lower(x, *(stacked[name] for name in NAMES)).compile().as_text()
    lines = re.findall(r".* = .*\ball-reduce(?:-start)?\(.*", text)
    return {"all": len(lines), "in loops": sum("/while/" in line for line in lines)}


def stages_in_a_wrong_order():
    return piped(4, (8, 5), order=[0, 2, 1, 3])


PARTS = {
    "attentions": attentions,
    "float64": attentions_in_float64,
    "bfloat16": attention_in_bfloat16,
    "second derivatives": second_derivatives,
    "wrong rings": wrong_rings,
    "layers": layers,
    "pipelines": pipelines,
    "wrong order": stages_in_a_wrong_order,
    "trained": trained,
    "sums": sums,
}


def main(names):
    results = {name: PARTS[name]() for name in names}
    json.dump(results, sys.stdout, default=lambda x: list(x) if isinstance(x, set) else float(x))


if __name__ == "__main__":
    assert len(jax.devices()) == 4
    main(sys.argv[1:])
