"""The program that test_default_gpu.py runs in its own process: two devices of the CPU stand for
GPUs. The first one is JAX's default device, as on a machine with GPUs. It prints what they give.
"""

import io
import json
import pickle

import jax

*GPUS, CPU = jax.local_devices()


def local_devices(backend=None):
    if backend in (None, "gpu", "cpu"):
        return {None: GPUS, "gpu": GPUS, "cpu": [CPU]}[backend]
    raise RuntimeError(backend)


jax.local_devices = local_devices

import jaxgrad as torch  # noqa: E402 - it reads the devices
from jaxgrad import nn  # noqa: E402
from jaxgrad.nn.functional import cross_entropy  # noqa: E402


def result_of(call):
    """The device of a result, or the first words of an error; of a first and of a later call."""
    results = set()
    for _ in range(3):
        try:
            results.add(str(call().device))
        except RuntimeError as error:
            results.add(str(error)[:40])
    return results.pop() if len(results) == 1 else sorted(results)


def beside_the_cpu():
    """What was not moved, and what was moved to the CPU, in one operator."""
    new, moved, layer = torch.ones(2, 2), torch.ones(2, 2).cpu(), nn.Linear(2, 2)
    weight = torch.ones(2, 2, requires_grad=True)
    calls = {
        "add": lambda: new + moved,
        "add_": lambda: torch.zeros(2, 2).add_(moved),
        "cat": lambda: torch.cat([new, moved]),
        "linear": lambda: layer(moved),
        "indices": lambda: new[torch.tensor([0, 1]).cpu()],
        "gradient": lambda: torch.autograd.grad((weight * moved).sum(), weight)[0],
        "jvp": lambda: torch.func.jvp(torch.mul, (new, moved), (moved, new))[1],
        "alone": lambda: new * 2 + 1,
    }
    return {name: result_of(call) for name, call in calls.items()}


def moved_to_a_gpu():
    """Operators of the CPU and of what was moved to the default device, where it was already."""
    there, here, layer = torch.ones(2, 2).cuda(), torch.ones(2, 2).cpu(), nn.Linear(2, 2).cuda()
    calls = {
        "add": lambda: there + here,
        "to": lambda: torch.ones(2, 2).to("cuda") + here,
        "linear": lambda: layer(here),
        "factory": lambda: torch.ones(2, 2, device="cuda") + here,
        "out": lambda: torch.add(there, there, out=torch.empty(2, 2).cpu()),
        "index": lambda: here[torch.tensor([0, 1]).cuda()],
    }
    return {name: result_of(call) for name, call in calls.items()}


def indices_on_the_cpu():
    """Of a tensor on a GPU: read, written, of a gradient."""
    x, place = torch.arange(6.0, device="cuda:1").reshape(3, 2), torch.tensor([2, 0]).cpu()
    y = x.clone().requires_grad_()
    y[place].square().sum().backward()
    x[place] = -1.0
    x[torch.tensor([False, True, False]).cpu()] = 7.0
    x.index_put_((place, torch.tensor([0, 1]).cpu()), torch.tensor(5.0).cpu())
    return [x.tolist(), str(x.device), y.grad.tolist()]


def losses(place):
    """Of steps with sums that are kept on the CPU, as in loops for training; resumed on the way."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)).to(place)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    counts, total = torch.zeros(2), torch.zeros(())
    for i in range(4):
        x, y = torch.randn(6, 4), torch.arange(6) % 2
        output = model(x.to(place))
        loss = cross_entropy(output, y.to(place))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach().cpu()
        counts += torch.bincount(output.argmax(1).cpu(), minlength=2).float()
        if i == 1:
            file = io.BytesIO()
            torch.save(optimizer.state_dict(), file)
            file.seek(0)
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
            optimizer.load_state_dict(torch.load(file, map_location="cpu"))
    state = optimizer.state[model[0].weight]["exp_avg"]
    return [total.item(), counts.tolist(), str(state.device), str(total.device)]


def parallel():
    """The devices of results of wrapped modules, given a batch on the CPU."""
    x, layer = torch.ones(3, 2).cpu(), nn.Linear(2, 1).cuda(1)
    torch.distributed.init_process_group("nccl", rank=0, world_size=1)
    results = [
        nn.DataParallel(layer)(x),
        nn.DataParallel(layer, device_ids=[1, 0], output_device=0)(x),
        nn.parallel.DistributedDataParallel(layer, device_ids=[1])(x),
        nn.DataParallel(nn.Linear(2, 1))(x),
    ]
    torch.distributed.destroy_process_group()
    return [str(result.device) for result in results]


def on_a_mesh():
    """A loss of results on both GPUs and of labels that were moved to the first."""
    torch.distributed.init_process_group("nccl", rank=0, world_size=1)
    mesh = torch.distributed.device_mesh.DeviceMesh.of(jax.sharding.Mesh(GPUS, ("dp",)))
    layer = nn.Linear(2, 1, bias=False).cuda()
    nn.init.ones_(layer.weight)
    model = nn.parallel.DistributedDataParallel(layer, device_mesh=mesh)
    loss = nn.functional.mse_loss(model(torch.ones(4, 2).cuda()), torch.zeros(4, 1).cuda())
    torch.distributed.destroy_process_group()
    return loss.item()


def runtime():
    cuda = torch.cuda
    with cuda.profiler.profile():
        codes = [cuda.profiler.start(), cuda.cudart().cudaProfilerStop()]
    memory = list(cuda.cudart().cudaMemGetInfo(0)) == [*cuda.mem_get_info(0)]
    cuda.check_error(cuda.cudart().cudaDeviceSynchronize())
    place = pickle.loads(pickle.dumps(torch.ones(2, device="cuda:1"))).device
    return [*codes, memory, str(place)]


if __name__ == "__main__":
    names = "cpu", "cuda"
    print(
        json.dumps(
            {
                "beside the cpu": beside_the_cpu(),
                "moved to a gpu": moved_to_a_gpu(),
                "indices": indices_on_the_cpu(),
                "losses": {place: losses(place) for place in names},
                "parallel": parallel(),
                "on a mesh": on_a_mesh(),
                "runtime": runtime(),
            }
        )
    )
