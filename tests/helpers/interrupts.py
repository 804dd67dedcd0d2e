"""Interrupts at random moments, for tests/compiled/test_interrupts.py and
tests/oracle/live_interrupts.py.

A job is prepared, run under a timer whose signal raises KeyboardInterrupt, and looked at: each part
of its state has changed or none has, and the state after can be read and goes on.
"""

import itertools
import os
import random
import shutil
import signal
import sys
import tempfile
import time

import jax
from jax.extend.core import set_current_trace, take_current_trace

import jaxgrad as torch
from jaxgrad.core.jax_internals import current_trace
from jaxgrad.tape.tensor import held


class Job:
    """What is interrupted. `state`: its parts as plain values, each of which a run changes."""

    def __init__(self):
        torch.manual_seed(0)
        layers = torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)
        self.net = torch.nn.Sequential(*layers)
        self.params = list(self.net.parameters())
        self.optimizer = self.make_optimizer()
        self.inputs = [torch.randn(5, 3) for _ in range(7)]
        self.number, self.calls = 0, []
        self.prepare()
        self.run()

    def make_optimizer(self):
        return torch.optim.Adam(self.params, lr=1e-3)

    def loss(self, x):
        return (self.net(x) ** 2).sum()

    def next_input(self):
        self.number += 1
        return self.inputs[self.number % len(self.inputs)]

    def prepare(self):
        """What comes before the run, not interrupted."""

    def run(self):
        raise NotImplementedError

    def state(self) -> list:
        kept = [tensor for state in self.optimizer.state.values() for tensor in state.values()]
        return [tensor.tolist() for tensor in (*self.params, *kept)]

    def end(self):
        """Called once, at the end."""

    def check(self, before, after):
        changed = [old != new for old, new in zip(before, after, strict=True)]
        assert all(changed) or not any(changed), changed


class CompiledStep(Job):
    """A compiled step of Adam that counts its calls in Python."""

    def __init__(self):
        self.compiled = torch.jit(self.step)
        super().__init__()

    def step(self, x):
        self.optimizer.zero_grad()
        loss = self.loss(x)
        loss.backward()
        self.optimizer.step()
        self.number += 1
        self.calls.append("step")
        return loss.detach()

    def run(self):
        self.compiled(self.inputs[self.number % len(self.inputs)])

    def state(self):
        return [*super().state(), self.number, len(self.calls)]

    def check(self, before, after):
        super().check(before, after)
        assert self.number == len(self.calls)


class FirstCall(CompiledStep):
    """The first call of a compiled step: trace, compilation, first run."""

    def prepare(self):
        self.compiled = torch.jit(self.step)


class OptimizerStep(Job):
    """An eager step of Adam."""

    def prepare(self):
        self.optimizer.zero_grad()
        self.loss(self.next_input()).backward()

    def run(self):
        self.optimizer.step()


class MomentumStep(OptimizerStep):
    """The first eager step of SGD, which creates momenta from the gradients."""

    def make_optimizer(self):
        return torch.optim.SGD(self.params, lr=1e-3, momentum=0.9, dampening=0.5)

    def prepare(self):
        super().prepare()
        self.optimizer.state.clear()

    def state(self):
        momenta = [self.optimizer.state[leaf].get("momentum_buffer") for leaf in self.params]
        return [leaf.tolist() for leaf in self.params] + [buffer is None for buffer in momenta]


class Backward(Job):
    """An eager pass that accumulates; afterwards grad mode is what it was."""

    def prepare(self):
        self.loss_now = self.loss(self.next_input())

    def run(self):
        self.loss_now.backward()

    def state(self):
        return [None if leaf.grad is None else leaf.grad.tolist() for leaf in self.params]


class FirstCallOfTransform(Job):
    """The first call of a batched function, which changes no tensor."""

    def prepare(self):
        torch.compiler.reset()  # what an earlier job compiled for the size would be used again
        self.number += 1
        self.batch, self.result = torch.ones(self.number, 2), None

    def run(self):
        self.result = torch.func.vmap(lambda x: x * 2)(self.batch)

    def state(self):
        return [self.result is None]


class Save(Job):
    """A file that is saved over an older one."""

    def __init__(self):
        self.folder = tempfile.mkdtemp()
        self.path = os.path.join(self.folder, "file")
        super().__init__()

    def prepare(self):
        self.number += 1
        self.saved = {name: torch.full((50,), float(self.number)) for name in "ab"}

    def run(self):
        torch.save(self.saved, self.path)

    def state(self):
        assert os.listdir(self.folder) == ["file"]
        return [tensor.tolist() for tensor in torch.load(self.path).values()]

    def end(self):
        shutil.rmtree(self.folder)


class Load(Job):
    """A state dict that is loaded into a module."""

    def prepare(self):
        self.start = {name: torch.randn(*leaf.shape) for name, leaf in self.net.named_parameters()}

    def run(self):
        self.net.load_state_dict(self.start)

    def state(self):
        return [leaf.tolist() for leaf in self.params]


class ViewWrite(Job):
    """A write through a view, which its base and another view see."""

    def prepare(self):
        if self.number == 0:
            self.base = torch.zeros(6, 6)
            self.row, self.column = self.base[1], self.base[:, 2]
        self.number += 1

    def run(self):
        self.row.add_(1)

    def state(self):
        return [self.row[2].item(), self.base[1, 2].item(), self.column[1].item()]

    def check(self, before, after):
        super().check(before, after)
        assert after[0] == after[1] == after[2]


JOBS = {
    kind.__name__: kind
    for kind in (
        CompiledStep,
        FirstCall,
        FirstCallOfTransform,
        OptimizerStep,
        MomentumStep,
        Backward,
        Save,
        Load,
        ViewWrite,
    )
}


class Timer:
    """Raises KeyboardInterrupt at a random moment of a block."""

    def __init__(self, seed: int):
        self.random, self.is_armed = random.Random(seed), False

    def __enter__(self):
        self.before = signal.signal(signal.SIGALRM, self.handle), sys.unraisablehook
        # an interrupt in a callback of a weak reference ends there: pytest's hook would keep it,
        # and so the frames of the trace and their tensors
        sys.unraisablehook = lambda _: None
        return self

    def __exit__(self, *error):
        signal.setitimer(signal.ITIMER_REAL, 0)
        handler, sys.unraisablehook = self.before
        signal.signal(signal.SIGALRM, handler)

    def handle(self, *_):
        if self.is_armed:
            self.is_armed = False
            raise KeyboardInterrupt

    def interrupt(self, run, seconds: float):
        """Call a function, and interrupt it within this time."""
        moment = max(1e-6, self.random.random() * seconds)
        try:
            self.is_armed = True
            signal.setitimer(signal.ITIMER_REAL, moment)
            run()
        except KeyboardInterrupt:
            pass
        finally:
            self.is_armed = False


class AtJaxState:
    """A profile function that raises KeyboardInterrupt at the n-th moment at which JAX has just
    switched its 64-bit types or its trace, or is about to switch back: there no `with` notices it.
    """

    managers = jax.enable_x64(True), set_current_trace(None), take_current_trace()
    moments = (
        *[("return", type(manager).__enter__.__code__) for manager in managers],
        *[("call", type(manager).__exit__.__code__) for manager in managers],
    )

    def __init__(self, number: int):
        self.left, self.has_raised = number, False

    def __call__(self, frame, event, _):
        if (event, frame.f_code) in self.moments:
            self.left -= 1
            if self.left < 0:
                self.has_raised = True
                raise KeyboardInterrupt


class InCacheOfJax(AtJaxState):
    """The same at the n-th moment at which JAX has begun to make an entry of a cache."""

    def __call__(self, frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_qualname == "_weakref_lru_cache.<locals>.<lambda>":
            self.left -= 1
            if self.left < 0:
                self.has_raised = True
                raise KeyboardInterrupt


class AfterDeletion(AtJaxState):
    """Sends the signal of Ctrl-C at the n-th function of Python that is called while an array is
    deleted that a tensor still holds: that of the first parameter of a job.
    """

    def __init__(self, number: int, tensor):
        super().__init__(number)
        self.tensor = tensor

    def __call__(self, frame, event, _):
        if event == "call" and not self.has_raised and held(self.tensor).is_deleted():
            self.left -= 1
            if self.left < 0:
                self.has_raised = True
                signal.raise_signal(signal.SIGINT)


def jax_state():
    return jax.config.jax_enable_x64, current_trace()


def at_moment(profile: AtJaxState, run, *arguments):
    """Call a function, and interrupt it where a profile function says."""
    sys.setprofile(profile)
    try:
        run(*arguments)
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)


def interrupt_at_jax_state(kind: type[Job]) -> int:
    """Interrupt a job at each moment that AtJaxState knows; gives their number."""
    job, before = kind(), jax_state()
    for number in itertools.count():
        job.prepare()
        state, profile = job.state(), AtJaxState(number)
        at_moment(profile, job.run)
        assert jax_state() == before
        job.check(state, job.state())
        if not profile.has_raised:
            return number


def interrupt(kind: type[Job], times: int, seed: int):
    """Interrupt a job so many times."""
    job, seconds = kind(), []
    for _ in range(5):
        job.prepare()
        begun = time.perf_counter()
        job.run()
        seconds.append(time.perf_counter() - begun)
    with Timer(seed) as timer:
        for _ in range(times):
            job.prepare()
            before = job.state()
            timer.interrupt(job.run, 1.1 * sorted(seconds)[2])
            job.check(before, job.state())
            assert torch.is_grad_enabled()
    job.prepare()
    before = job.state()
    job.run()
    assert job.state() != before
    job.end()
