"""The program that test_pretended_devices.py runs in its own process: programs as users of CUDA
write them, on four devices of the CPU in the place of GPUs. It prints what they give.
"""

import io
import json
import threading
import warnings

import jax
import numpy

DEVICES = jax.local_devices()


def local_devices(backend=None):
    """The first device is the CPU, and the others are GPUs."""
    if backend in (None, "gpu", "cpu"):
        return {None: DEVICES, "gpu": DEVICES[1:], "cpu": DEVICES[:1]}[backend]
    raise RuntimeError(backend)


jax.local_devices = local_devices

import jaxgrad as torch  # noqa: E402 - it reads the devices
from jaxgrad import nn  # noqa: E402


def error_of(call):
    try:
        return call()
    except Exception as error:
        return [isinstance(error, RuntimeError), isinstance(error, AssertionError), str(error)]


def current_devices():
    """The device that "cuda" is: after `set_device`, in blocks, and in another thread."""
    names = []

    def note():
        names.append(str(torch.ones(1, device="cuda").device))

    note()
    torch.cuda.set_device(1)
    note()
    with torch.cuda.device(2):
        note()
        with torch.accelerator.device_index(3):
            note()
        names.append(torch.cuda.current_device())
    names.append(str(torch.ones(1).cuda().device))
    thread = threading.Thread(target=note)
    thread.start()
    thread.join()
    torch.set_default_device("cuda")
    names.append(str(nn.Linear(1, 1).weight.device))
    torch.cuda.set_device(3)
    names.append(str(torch.ones(1).device))
    torch.set_default_device(None)
    compiled = torch.compile(lambda x: x.cuda() * 2)
    names.append(str(compiled(torch.ones(1, device="cuda:3")).device))
    torch.cuda.set_device(0)
    names.append(str(torch.ones(1).device))
    return names


class Halves(nn.Module):
    """A network whose halves may be on two devices."""

    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8).to(first), nn.Linear(8, 2).to(second)

    def forward(self, x):
        hidden = self.first(x.to(self.first.weight.device)).relu()
        return self.second(hidden.to(self.second.weight.device))


def losses_of(name, *places):
    """Five steps of an optimizer, which is saved and loaded after the third."""
    torch.manual_seed(0)
    model = Halves(*places)
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01)
    x, y = torch.randn(6, 4), torch.tensor([0, 1] * 3).to(places[1])
    losses = []
    for i in range(5):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
        if i == 2:
            file = io.BytesIO()
            torch.save([model.state_dict(), optimizer.state_dict()], file)
            file.seek(0)
            weights, state = torch.load(file)
            optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01)
            model.load_state_dict(weights)
            optimizer.load_state_dict(state)
    assert [str(p.device) for p in model.parameters()] == [str(p) for p in places for _ in "wb"]
    return losses


def mixed_precision(place):
    torch.manual_seed(0)
    model = nn.Linear(4, 2).to(place)
    optimizer, scaler = torch.optim.Adam(model.parameters()), torch.amp.GradScaler(place[:4])
    data = torch.utils.data.TensorDataset(torch.randn(6, 4), torch.arange(6) % 2)
    losses = []
    for x, y in torch.utils.data.DataLoader(data, 3, pin_memory=True):
        x, y = x.to(place, non_blocking=True), y.to(place, non_blocking=True)
        with torch.autocast(place[:4].rstrip(":"), dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
    return losses


def frequent():
    """The devices of calls on two devices that come up so often that they could be one program."""
    places = set()
    for _ in range(100):
        here, there = torch.ones(3) * 2, torch.ones(3, device="cuda:1") * 3
        here, there = here + 1, there + 1
        places.add((str(here.device), str(there.device)))
    return sorted(places)


class Reads:
    """How often numbers are copied from a device to the host, in a block."""

    def __enter__(self):
        self.count, kind = 0, type(jax.numpy.ones(1))
        self.before = kind, kind._value, numpy.asarray, numpy.array

        def counted(function):
            def call(value, *args, **kwargs):
                self.count += isinstance(value, kind)
                return function(value, *args, **kwargs)

            return call

        kind._value = property(counted(kind._value.fget))
        numpy.asarray, numpy.array = counted(numpy.asarray), counted(numpy.array)
        return self

    def __exit__(self, *raised):
        kind, kind._value, numpy.asarray, numpy.array = self.before


NETWORKS = {
    "convolution": lambda: nn.Sequential(
        nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2)
    ),
    "attention": lambda: nn.Sequential(
        nn.Linear(4, 8), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), nn.Flatten()
    ),
    "perceptron": lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(4, 8), nn.LayerNorm(8), nn.Dropout(0.1), nn.Linear(8, 2)
    ),
}
OPTIMIZERS = {
    "convolution": ("SGD", "Adam", "Adagrad"),
    "attention": ("AdamW", "Adafactor"),
    "perceptron": ("RMSprop", "RAdam", "NAdam", "Rprop"),
}


def transfers():
    """By network and optimizer, of a step as it is and compiled: copies to another device, which
    raise, and to the host.
    """
    x, y = torch.ones(6, 1, 4, device="cuda:1"), torch.tensor([0, 1] * 3, device="cuda:1")
    losses = {"squares": torch.square, "labels": lambda z: nn.functional.cross_entropy(z, y)}
    counts = {}
    for network, names in OPTIMIZERS.items():
        for name in names:
            loss_of = losses["labels" if name in ("AdamW", "Adagrad") else "squares"]
            model = NETWORKS[network]().to("cuda:1")
            optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01)

            def step(model=model, optimizer=optimizer, loss_of=loss_of):
                optimizer.zero_grad()
                loss = loss_of(model(x)).mean()
                loss.backward()
                optimizer.step()
                return loss

            counts[f"{network}, {name}"] = [reads_of(step), reads_of(torch.compile(step))]
    return counts


def reads_of(step):
    for _ in range(3):
        step()
    with jax.transfer_guard_device_to_device("disallow_explicit"), Reads() as reads:
        assert str(step().device) == "cuda:1"
    return reads.count


def loading():
    """The devices of batches, and whether `to` returns them as they are."""
    data = torch.utils.data.TensorDataset(torch.arange(8.0).reshape(4, 2), torch.arange(4))
    results = []
    torch.cuda.set_device(1)
    for options in ({}, {"num_workers": 1}, {"pin_memory_device": "cuda:2"}, {"pin_memory": False}):
        loader = torch.utils.data.DataLoader(data, 2, **{"pin_memory": True} | options)
        with jax.transfer_guard_device_to_device("disallow_explicit"):
            batches = list(loader)
            place = batches[0][0].device
            same = [x.to(place, non_blocking=True) is x for batch in batches for x in batch]
        sums = [(x * 2 + 1).sum().item() for x, _ in batches]
        with_model = nn.Linear(2, 1, device=place)(batches[0][0]).device
        results.append([str(place), all(same), sums, str(with_model)])
    torch.cuda.set_device(0)
    return results


def reads_are_counted():
    x = torch.ones(2, device="cuda:1") * 2
    with Reads() as reads:
        x.sum().item()
    return reads.count


def between():
    """What torch.cuda.comm does, with a gradient, and what asks about pairs of GPUs."""
    comm, x = torch.cuda.comm, torch.arange(4.0, requires_grad=True)
    parts = comm.scatter(x, [0, 1, 2], [1, 1, 2])
    copies = comm.broadcast(parts[2], ["cuda:1", "cuda:2"])
    total = comm.reduce_add([copies[0], copies[1] * 2], 1)
    joined = comm.gather([parts[0], parts[1], total], destination=-1)
    joined.sum().backward()
    (added,) = comm.reduce_add_coalesced([[copies[0]], [copies[1]]])
    return {
        "places": [str(y.device) for y in (*parts, *copies, total, joined, added)],
        "numbers": [joined.tolist(), added.tolist(), x.grad.tolist()],
        "peers": torch.cuda.can_device_access_peer(0, 1),
        "no peer": error_of(lambda: torch.cuda.can_device_access_peer(0, 9))[0],
        "shapes": error_of(lambda: comm.reduce_add([torch.ones(1), torch.ones(2)]))[2],
    }


def settings():
    """Of memory and of reads that wait."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_per_process_memory_fraction(0.75)
        torch.cuda.set_per_process_memory_fraction(0.5)
    modes = [torch.cuda.get_sync_debug_mode()]
    for mode in "warn", "error", 0:
        torch.cuda.set_sync_debug_mode(mode)
        modes.append(torch.cuda.get_sync_debug_mode())
    errors = [error_of(lambda: torch.cuda.set_sync_debug_mode("x"))[2]]
    errors.append(error_of(lambda: torch.cuda.set_per_process_memory_fraction(1.5))[2])
    return [len(caught), torch.cuda.get_per_process_memory_fraction(), modes, errors]


def streams():
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        y = torch.ones(3, device="cuda") * 2
        y.record_stream(stream)
    return [y.tolist(), torch.cuda.get_device_capability(), torch.cuda.memory_allocated()]


PLACES: list[str] = []  # of the gradients that reach a Function


class Cube(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3, x * 1

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, grad, other):
        PLACES.extend([str(grad.device), str(other.device), str(grad.dtype)])
        return 3 * grad * ctx.saved_tensors[0] ** 2 + other


def gradients():
    """The devices of gradients: of a sum, which reads nothing, and of a Function under autocast."""
    x = torch.ones(2, device="cuda:2").requires_grad_()
    (x.sum() + x[0]).backward()
    half = torch.full((2,), 2.0, device="cuda:1").half().requires_grad_()
    with torch.autocast("cuda"):
        Cube.apply(half)[0].sum().backward()
    zeros = torch.autograd.grad(
        x.sum(), [half], allow_unused=True, materialize_grads=True, retain_graph=True
    )
    rows = torch.func.jacrev(lambda x: x * 2)(x.detach())
    columns = torch.func.jacfwd(lambda x: x * 2)(x.detach())
    assert rows.device == columns.device == x.device
    grads = [x.grad, half.grad, *zeros]
    return [[str(y.device), y.tolist()] for y in grads] + [PLACES, str(half.grad.dtype)]


def autocast():
    """The dtypes of results under autocast, on a GPU and on a CPU, and a sum beyond float16."""

    def dtypes(place):
        x = torch.full((2, 2), 0.5, device=place)
        half, index = x.half(), torch.tensor([0, 1], device=place)
        results = {
            "exp": half.exp(),
            "pow": half**2,
            "softmax": half.softmax(-1),
            "sum": half.sum(),
            "norm": torch.linalg.vector_norm(half),
            "layer_norm": nn.functional.layer_norm(half, (2,)),
            "sin": half.sin(),
            "asked": half.sum(dtype=torch.float16),
            "in place": half.clone().exp_(),
            "mv": torch.mv(x, x[0]),
            "scatter_add": x[0].scatter_add(0, index, half[1].to(x.dtype)),
        }
        return {name: str(y.dtype) for name, y in results.items()}

    with torch.autocast("cuda", dtype=torch.float16), torch.autocast("cpu", dtype=torch.float16):
        dots = torch.dot(torch.ones(2, device="cuda:1").half(), torch.ones(2, device="cuda:1"))
        large = (torch.ones(4, device="cuda:1").half() * 40000).sum().item()
        return [dtypes("cuda:1"), dtypes("cpu"), str(dots.dtype), large]


def objects():
    """What streams, moves and settings of CUDA's programs say."""
    with warnings.catch_warnings(action="ignore"):
        torch.set_default_tensor_type(torch.cuda.FloatTensor)
        by_type = str(torch.ones(1).device)
        torch.set_default_device(None)
    x = torch.ones(2).cuda(1, non_blocking=True)
    same = torch.cuda.current_stream() == torch.cuda.default_stream()
    other = torch.cuda.Stream("cuda:1", priority=-1)
    return [
        *(by_type, str(x.device), x.cuda(non_blocking=True) is x, str(x.cpu().device), same),
        *(other == torch.cuda.current_stream(), other.priority, other.device_type),
        *(torch.backends.cudnn.is_acceptable(x), torch.get_device_module().__name__),
    ]


def in_place_on_two():
    """The errors of writes of another GPU's numbers, in what was computed, and what stays."""
    a, b = torch.ones(2, device="cuda:1"), torch.ones(2, device="cuda:2")

    def calls():
        yield lambda: a.add_(b)
        yield lambda: torch.mul(a, b)
        yield lambda: a[0:1].copy_(b[:1] * 0)
        yield lambda: (a * 2 * b.clone().requires_grad_()).sum().backward()

    errors = []
    for _ in range(3):  # the first call traces, and the others are noted
        a, b = a + 1, b + 1
        for call in calls():
            result = error_of(call)
            errors.append(result[2] if isinstance(result, list) else "written")
    return [errors, a.tolist(), b.tolist(), str(a.device)]


def with_the_cpu():
    """What operators of a tensor on the CPU and one on a GPU do, at a first and a later call."""
    here, there = torch.ones(2), torch.ones(2, device="cuda:1")
    calls = {
        "add": lambda: here + there,
        "add_": lambda: there.add_(here),
        "linear": lambda: nn.Linear(2, 2)(there),
        "cat": lambda: torch.cat([here, there]),
        "number": lambda: there * torch.tensor(2.0) + torch.tensor(1.0, device="cuda:1").cpu(),
        "indices": lambda: there[torch.tensor([0, 1, 1])],
        "copy_": lambda: here.copy_(there * 3),
        "copy_ back": lambda: there.copy_(here),
        "fill_": lambda: (there + 1).fill_(7),
        "zeros_like": lambda: torch.zeros_like(there) + 1,
        "slice": lambda: there.__setitem__(slice(1, 2), torch.zeros(1)) or there,
    }
    results = {}
    for name, call in calls.items():
        for _ in range(2):
            result = error_of(call)
        is_error = isinstance(result, list)
        results[name] = result[2] if is_error else [result.tolist(), str(result.device)]
    return results


def main():
    a, b = torch.ones(2, device="cuda:1"), torch.ones(2, device="cuda:2")
    names = "SGD", "Adam", "Adafactor", "NAdam"
    print(
        json.dumps(
            {
                "current": current_devices(),
                "losses": [
                    [losses_of(name, "cpu", "cpu"), losses_of(name, "cuda:0", "cuda:1")]
                    for name in names
                ],
                "mixed precision": [mixed_precision("cpu"), mixed_precision("cuda:2")],
                "frequent": frequent(),
                "gradients": gradients(),
                "autocast": autocast(),
                "objects": objects(),
                "transfers": transfers(),
                "reads are counted": reads_are_counted(),
                "loading": loading(),
                "between": between(),
                "settings": settings(),
                "streams": streams(),
                "two devices": error_of(lambda: (a + b).tolist()),
                "in place": in_place_on_two(),
                "with the cpu": with_the_cpu(),
                "no device": error_of(lambda: torch.cuda.set_device(4)),
            }
        )
    )


if __name__ == "__main__":  # which workers of loaders import
    main()
