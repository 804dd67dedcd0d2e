"""The program that test_wrapped.py runs with jaxgrad and record_wrapped.py with PyTorch, in two
processes or in one: it trains models in FullyShardedDataParallel, and prints what comes out.

Arguments: the framework, "jaxgrad" or "torch", and the names of cases.
"""

import functools
import importlib
import json
import os
import sys
import warnings

torch = importlib.import_module(sys.argv[1])
dist = importlib.import_module(f"{sys.argv[1]}.distributed")
fsdp = importlib.import_module(f"{sys.argv[1]}.distributed.fsdp")
wrap = importlib.import_module(f"{sys.argv[1]}.distributed.fsdp.wrap")
scaler = importlib.import_module(f"{sys.argv[1]}.distributed.fsdp.sharded_grad_scaler")
mesh_of = importlib.import_module(f"{sys.argv[1]}.distributed.device_mesh").init_device_mesh

nn, F, Strategy = torch.nn, torch.nn.functional, fsdp.ShardingStrategy
BATCH, CPU = 8, torch.device("cpu")


class Block(nn.Module):
    """5 numbers of its bias are no multiple of two."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(6, 5), nn.Linear(5, 6)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(x)))


def network():
    return filled(nn.Sequential(nn.Linear(4, 6), Block(), nn.Tanh(), Block(), nn.Linear(6, 3)))


def filled(model):
    with torch.no_grad():
        for number, p in enumerate(model.parameters()):
            values = torch.arange(p.numel(), dtype=torch.float32).reshape(p.shape)
            p.copy_(torch.sin(values * (number + 1.5)) / 2)
    return model


def batch(step):
    numbers = torch.arange(4.0 * BATCH).reshape(BATCH, 4) + step
    return torch.cos(numbers * 0.7), torch.sin(numbers[:, :3])


def part(tensor):
    count = BATCH // dist.get_world_size()
    return tensor[dist.get_rank() * count : (dist.get_rank() + 1) * count]


def whole(tensor):
    tensor = tensor.detach()
    return (tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor).float().tolist()


def state_of(model):
    return {key: whole(value) for key, value in model.state_dict().items()}


def adam(model):
    return torch.optim.Adam(model.parameters(), 0.01, eps=1e-3)


def clip_of(model):
    return functools.partial(nn.utils.clip_grad_norm_, [*model.parameters()])


def train(model, optimizer, part_of, clip, steps=range(3)):
    """The losses and the norms of the gradients of some steps."""
    losses, norms = [], []
    for step in steps:
        x, y = map(part_of, batch(step))
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        norms.append(float(clip(0.5)))
        optimizer.step()
        loss = loss.detach().clone()
        dist.all_reduce(loss)
        losses.append(float(loss) / dist.get_world_size())
    return {"losses": losses, "norms": norms}


def plain():
    """Without wrapping, on whole batches in one process: this is what all others are to give."""
    model = network()
    optimizer = adam(model)
    results = train(model, optimizer, lambda tensor: tensor, clip_of(model))
    state = optimizer.state_dict()["state"]
    names = [name for name, _ in model.named_parameters()]
    moments = {name: whole(state[n]["exp_avg"]) for n, name in enumerate(names)}
    return {**results, "state": state_of(model), "moments": moments}


def sharded(model, policy=None, **options):
    return fsdp.FullyShardedDataParallel(
        model, auto_wrap_policy=policy, device_id=CPU, **{"use_orig_params": True, **options}
    )


POLICIES = {
    "size": functools.partial(wrap.size_based_auto_wrap_policy, min_num_params=60),
    "transformer": functools.partial(
        wrap.transformer_auto_wrap_policy, transformer_layer_cls={Block}
    ),
    "lambda": functools.partial(
        wrap.lambda_auto_wrap_policy, lambda_fn=lambda m: getattr(m, "out_features", 0) == 5
    ),
    "or": functools.partial(
        wrap._or_policy,
        policies=[wrap.ModuleWrapPolicy([Block]), wrap.ModuleWrapPolicy([nn.Linear])],
    ),
    "always": wrap.always_wrap_policy,
    "module": wrap.ModuleWrapPolicy({Block, nn.Linear}),
    "custom": wrap.CustomPolicy(
        lambda m: {"sharding_strategy": Strategy.NO_SHARD} if isinstance(m, Block) else False
    ),
}
# with use_orig_params=True PyTorch gives wrong states of optimizers on a CPU
FLAT = {"policy": POLICIES["module"], "use_orig_params": False}
WAYS = {
    "default": {"use_orig_params": False},
    "flat": FLAT,
    "grads": {"policy": POLICIES["module"], "sharding_strategy": Strategy.SHARD_GRAD_OP},
    "replicated": {"policy": POLICIES["module"], "sharding_strategy": Strategy.NO_SHARD},
    **{name: {"policy": policy} for name, policy in POLICIES.items()},
}


def trained(way):
    """What a wrapped model learns, which units it has, and its state dicts."""
    model = sharded(network(), **WAYS[way])
    optimizer = adam(model)
    results = train(model, optimizer, part, model.clip_grad_norm_)
    return {**results, **described(model, optimizer)}


def described(model, optimizer):
    units = model.fsdp_modules(model)
    moments = model.optim_state_dict(model, optimizer)["state"]
    return {
        "units": [name for name, inner in model.named_modules() if inner in units],
        "roots": len(model.fsdp_modules(model, root_only=True)),
        "state": state_of(model),
        "moments": {name: whole(state["exp_avg"]) for name, state in sorted(moments.items())},
    }


def names():
    """The names in a wrapped model, and in a block of summon_full_params."""
    model = sharded(network(), POLICIES["transformer"])
    outside = [name for name, _ in model.named_parameters()]
    with model.summon_full_params(model):
        inside = [(name, list(p.shape)) for name, p in model.named_parameters()]
    last = model[4]
    return {
        "outside": outside,
        "inside": inside,
        "repr": repr(model),
        "module": repr(model.module),
        "forwarded": [last.out_features, type(model[1]).__name__, type(model[1].module).__name__],
    }


def by_hand():
    """Units that `wrap` makes."""
    with wrap.enable_wrap(wrapper_cls=fsdp.FullyShardedDataParallel, device_id=CPU):
        model = network()
        for place in (1, 3):
            model[place] = wrap.wrap(model[place], use_orig_params=True)
    model = sharded(model)
    optimizer = adam(model)
    results = train(model, optimizer, part, model.clip_grad_norm_)
    return {**results, **described(model, optimizer)}


def hybrid():
    """Replicas of shards. PyTorch does not add the gradients of replicas without shards."""
    mesh = mesh_of("cpu", (2, 1), mesh_dim_names=("replicas", "shards"))
    options = {"sharding_strategy": Strategy.HYBRID_SHARD, "device_mesh": mesh}
    model = sharded(network(), POLICIES["module"], **options)
    optimizer = adam(model)
    results = train(model, optimizer, part, model.clip_grad_norm_)
    return {**results, **described(model, optimizer)}


def accumulated():
    """Gradients of two batches, the first without communication."""
    model = sharded(network(), POLICIES["module"])
    with model.no_sync():
        x, y = map(part, batch(0))
        F.mse_loss(model(x), y).backward()
    x, y = map(part, batch(1))
    F.mse_loss(model(x), y).backward()
    with model.summon_full_params(model, with_grads=True):
        return {name: whole(p.grad) for name, p in model.named_parameters()}


def summoned():
    """What blocks of summon_full_params change."""
    model, results = sharded(network(), POLICIES["module"]), {}
    for writeback in (True, False):
        with model.summon_full_params(model, writeback=writeback), torch.no_grad():
            for p in model.parameters():
                p.mul_(2)
        results[str(writeback)] = state_of(model)
    model.apply(lambda m: nn.init.ones_(m.bias) if isinstance(m, nn.Linear) else None)
    return results | {"applied": state_of(model)}


def ignored():
    """Parameters that are left alone, and modules."""
    model = network()
    one = sharded(model, POLICIES["module"], ignored_states=[*model[1].parameters()])
    model = network()
    other = sharded(model, POLICIES["module"], ignored_modules=[model[1]])
    results = {}
    for name, model in ("parameters", one), ("modules", other):
        F.mse_loss(model(batch(0)[0]), batch(0)[1]).backward()  # one batch in all processes
        units = [
            path for path, inner in model.named_modules() if inner in model.fsdp_modules(model)
        ]
        results[name] = {"units": units, "norm": float(model.clip_grad_norm_(1.0))}
        results[name]["gradient"] = whole(model[1].up.weight.grad)
    return results


class Observed(nn.Module):
    """Says in which dtypes it computes."""

    def __init__(self, seen):
        super().__init__()
        self.layer, self.seen = nn.Linear(4, 4), seen
        self.norm, self.scale = nn.BatchNorm1d(4), nn.Parameter(torch.ones(4))
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x, number):
        self.seen.append([str(t.dtype) for t in (x, self.scale, self.shift, number)])
        y = self.norm(self.layer(x * self.scale))
        self.seen.append([str(t.dtype) for t in (y, self.norm.weight, self.norm.running_mean)])
        return y


PRECISIONS = {
    "both": {"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32},
    "buffers": {"param_dtype": torch.bfloat16, "buffer_dtype": torch.bfloat16},
    "inner inputs": {"param_dtype": torch.bfloat16, "cast_forward_inputs": True},
    "no inputs": {"reduce_dtype": torch.bfloat16, "cast_root_forward_inputs": False},
}


def precise(name):
    """The dtypes of inputs, parameters, buffers, outputs, gradients and state dicts."""
    seen, policy = [], wrap.ModuleWrapPolicy({nn.Linear})
    model = filled(Observed(seen))
    model = sharded(model, policy, mixed_precision=fsdp.MixedPrecision(**PRECISIONS[name]))
    output = model(part(batch(0)[0]), torch.arange(2))
    output.float().square().sum().backward()
    gradients = {str(p.grad.dtype) for p in model.parameters() if p.grad is not None}
    state = {key: str(value.dtype) for key, value in model.state_dict().items()}
    units = [path for path, inner in model.named_modules() if inner in model.fsdp_modules(model)]
    return {
        "seen": seen,
        "output": str(output.dtype),
        "gradients": sorted(gradients),
        "state": state,
        "units": units,
        "values": whole(output),
    }


def widened():
    """A model in bfloat16 whose units get parameters in float32 before training, by what accelerate
    reads of them and changes in them.
    """
    model = filled(network()).to(torch.bfloat16)
    dtypes = fsdp.MixedPrecision(param_dtype=torch.bfloat16, buffer_dtype=torch.bfloat16)
    model = sharded(model, POLICIES["always"], mixed_precision=dtypes, use_orig_params=False)
    seen = []
    for unit in model.fsdp_modules(model):
        if unit._has_params:
            flat = unit._flat_param
            seen.append([str(flat.dtype), flat.requires_grad, str(flat.device), [*flat._fqns]])
            flat.data = flat.data.to(torch.float32)
            unit._handle._orig_param_dtype = torch.float32
    before = state_of(model)
    optimizer = adam(model)
    results = train(model, optimizer, part, model.clip_grad_norm_)
    with model.summon_full_params(model):
        dtypes = [str(p.dtype) for p in model.parameters()]
    state = {key: str(value.dtype) for key, value in model.state_dict().items()}
    counts = [len(model.fsdp_modules(model)), len(seen)]
    return {
        "seen": seen,
        "dtypes": dtypes,
        "state": state,
        "counts": counts,
        "before": before,
        "values": {**results, "after": state_of(model)},
    }


def reduced():
    """Gradients that are added in bfloat16, of a product that is not rounded to it."""
    layer = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0 + 2**-12, 3.0], [5.0 + 2**-12, 7.0]]))
    model = sharded(layer, mixed_precision=fsdp.MixedPrecision(reduce_dtype=torch.bfloat16))
    x = torch.tensor([[1.0 + 2**-10 + dist.get_rank(), 1.0]])
    output = model(x)
    output.sum().backward()
    with model.summon_full_params(model, with_grads=True):
        return {"output": whole(output), "gradient": whole(model.weight.grad)}


def saved():
    """State dicts, and what a model and an optimizer that load them go on with."""
    full = fsdp.StateDictType.FULL_STATE_DICT
    model = sharded(network(), **FLAT)
    optimizer = adam(model)
    train(model, optimizer, part, model.clip_grad_norm_)
    state, moments = model.state_dict(), copied(model.optim_state_dict(model, optimizer))
    alone = (
        fsdp.FullStateDictConfig(rank0_only=True),
        fsdp.FullOptimStateDictConfig(rank0_only=True),
    )
    with model.state_dict_type(model, full, *alone):
        setting = model.get_state_dict_type(model)
        counts = [len(model.state_dict()), len(model.optim_state_dict(model, optimizer))]
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, counts)
    results = {"counts": everyone, "setting": setting.state_dict_config.rank0_only}
    results["setting after"] = model.get_state_dict_type(model).state_dict_config.rank0_only
    results["resumed"] = resumed(state, copied(moments))
    # the unsharded model takes both
    other = network()
    other.load_state_dict(state)
    optimizer = adam(other)
    key = fsdp.OptimStateKeyType.PARAM_ID
    optimizer.load_state_dict(model.rekey_optim_state_dict(moments, key, other))
    train(other, optimizer, lambda tensor: tensor, clip_of(other), range(3, 5))
    return results | {"unsharded": state_of(other)}


def copied(moments):
    """In PyTorch the parameters of a unit share the tensor that counts steps."""
    state = {
        name: {key: value.clone() for key, value in values.items()}
        for name, values in moments["state"].items()
    }
    return {"state": state, "param_groups": moments["param_groups"]}


def resumed(state, moments):
    """The parameters of a new model after two more steps."""
    model = sharded(network(), **{**FLAT, "policy": POLICIES["transformer"]})
    optimizer = adam(model)
    model.load_state_dict(state)
    optimizer.load_state_dict(model.optim_state_dict_to_load(model, optimizer, moments))
    train(model, optimizer, part, model.clip_grad_norm_, range(3, 5))
    return state_of(model)


def empty():
    """A model on the device meta."""
    with torch.device("meta"):
        layers = nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2))
    seen = []

    def init(module):
        seen.append(type(module).__name__)
        module.to_empty(device="cpu", recurse=False)
        for tensor in (*module.parameters(recurse=False), *module.buffers(recurse=False)):
            tensor.data.fill_(dist.get_rank() + 1)

    model = sharded(layers, param_init_fn=init, sync_module_states=True)
    buffers = [whole(buffer) for buffer in model.buffers()]
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, buffers)
    return {"seen": seen, "state": state_of(model), "buffers": everyone}


def scaled():
    """A step that all processes skip, for a gradient of one is infinite."""
    model = sharded(network())
    optimizer, scale = adam(model), scaler.ShardedGradScaler("cpu", init_scale=4.0)
    results = {"before": state_of(model), "scales": []}
    for factor in (float("inf"), 1.0):
        optimizer.zero_grad()
        x, y = map(part, batch(0))
        scale_of_rank = factor if dist.get_rank() == 0 else 1.0
        scale.scale(F.mse_loss(model(x), y) * scale_of_rank).backward()
        scale.step(optimizer)
        scale.update()
        results["scales"].append(scale.get_scale())
        results[f"after {factor}"] = state_of(model)
    return results


def refused():
    """The errors of wrong arguments: their classes."""
    inner = sharded(network(), POLICIES["module"])
    inner(batch(0)[0])
    full = fsdp.StateDictType.FULL_STATE_DICT
    both = {"writeback": True, "rank0_only": True}
    calls = {
        "no_sync": lambda: inner[1].no_sync().__enter__(),
        "clip": lambda: inner[1].clip_grad_norm_(1.0),
        "wrapped": lambda: sharded(inner, POLICIES["module"]),
        "config": lambda: inner.set_state_dict_type(inner, full, fsdp.ShardedStateDictConfig()),
        "hybrid": lambda: sharded(network(), sharding_strategy=Strategy.HYBRID_SHARD),
        "policy": lambda: sharded(network(), wrap.CustomPolicy(lambda module: 1)),
        "summon": lambda: inner.summon_full_params(inner, **both).__enter__(),
        "ignored": lambda: sharded(network(), ignored_modules=[], ignored_states=[]),
        "nested": lambda: [nest() for _ in range(1)],
    }

    def nest():
        with (
            wrap.enable_wrap(wrapper_cls=nn.Sequential),
            wrap.enable_wrap(wrapper_cls=nn.Sequential),
        ):
            pass

    return {name: raised(call) for name, call in calls.items()}


def raised(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "nothing"


CASES = {
    "plain": plain,
    "names": names,
    "by hand": by_hand,
    "hybrid": hybrid,
    "reduced": reduced,
    "accumulated": accumulated,
    "summoned": summoned,
    "ignored": ignored,
    "saved": saved,
    "empty": empty,
    "scaled": scaled,
    "refused": refused,
    "precision widened": widened,
    **{f"way {way}": functools.partial(trained, way) for way in WAYS},
    **{f"precision {name}": functools.partial(precise, name) for name in PRECISIONS},
}


def main():
    warnings.simplefilter("ignore")
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29533", rank=0, world_size=1)
    cases = sys.argv[2].split(";") if len(sys.argv) > 2 else CASES
    results = {name: CASES[name]() for name in cases}
    if dist.get_rank() == 0:
        print("FOUND", json.dumps(results))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
