"""A grammar of imperative programs: state, a function that reads and changes it, and a script of
calls of that function and changes between them. `random_program(seed)` draws one, as source.

The lines of the grammar are Python with nonterminals in angle brackets. `<m>` is an expression for
a tensor of shape (2, 3), `<v>` of (3,), `<r>` without dimensions; `<n>` is a number, `<k>` a small
int, `<i>` an index below 2, `<c>` a condition; `<M>` and `<V>` may be written in place; `<=m>` is
a new variable and `<new>` that variable in the lines below it. More dashes draw a line more often.
"""

import ast
import random
import re
import textwrap
from typing import NamedTuple

# how each attribute of `s` begins; a program has those that its lines name
STATE = """
- s.w = leaf(2, 3)
- s.b = leaf(3)
- s.c = leaf()
- s.buf = numbers(2, 3)
- s.hist = numbers(3)
- s.total = numbers()
- s.row = s.buf[1]
- s.part = s.buf[:, 1:]
- s.column = s.w.detach()[:, 0]
- s.outer = s.w * 2
- s.idx = torch.tensor(1)
- s.order = torch.tensor([2, 0, 1])
- s.count64 = torch.tensor([1, 2, 3])
- s.mask = torch.tensor([True, False, True])
- s.single = torch.tensor([0.5, 1.5, -2.0])
- s.half = torch.tensor([0.5, -1.0, 2.0], dtype=torch.bfloat16)
- s.empty = torch.zeros(0, 3, dtype=torch.float64)
- s.array = np.array([1.0, 2.0, 4.0])
- s.h = None
- s.state = None
- s.first = True
- s.count = 0
- s.limit = 3
- s.rate = 0.5
- s.mode = "sin"
- s.log = []
- s.tensors = [numbers(3), numbers(3) * 2]
- s.pair = (numbers(3), 0.5)
- s.table = {"t": numbers(3), "n": 1}
- s.nested = {"a": [1.0, {"b": 0.5}], "t": (numbers(3), [numbers(3)])}
- s.names = {"a"}
- s.queue = collections.deque(maxlen=2)
- s.cfg = Config(rate=0.5, steps=1, extra={})
- s.slots = Slots(2.0, numbers(3))
- s.point = Point(0.5, numbers(3))
- s.space = types.SimpleNamespace(k=0.5, inner=Slots(1.0, None))
- s.cell = Cell()
- s.net = network(BatchNorm1d=True)
- s.drop = nn.Dropout(0.4)
- s.line = network()
- s.sgd = optim.SGD([s.w, s.b], lr=0.1, momentum=0.9)
- s.adam = optim.Adam([s.w, s.c], lr=0.05, eps=1e-3)
- s.adamw = optim.AdamW(s.line.parameters(), lr=0.05, eps=1e-3)
- s.sched = optim.lr_scheduler.StepLR(s.sgd, 2, gamma=0.5)
- s.cosine = optim.lr_scheduler.LambdaLR(s.adam, lambda e: 1 / (1 + e))
- s.gen = torch.Generator().manual_seed(3)
- s.inner = jit(lambda t: (t * s.rate).tanh() + s.b)
- s.gain = lambda: s.rate * 2
"""

STATEMENTS = """
--- <=m> = <m> * 1.5
--- <=m> = <m> + <v>
--- <=v> = <v> * 0.5
--- <=r> = <r> + <n>
- <=v> = <M>[<i>]
- <=v> = <M>.select(0, <i>)
- <=v> = <M>[s.idx]
- <=v> = <M>.unbind(0)[<i>]
- <=v> = <M>.t()[:, <i>]
- <=v> = <M>.view(6)[1:4]
- <=m> = <M>.view(3, 2).view(2, 3)
- <=v> = <M>.detach()[<i>]
- <=m> = <m>.float().double()
- a, b = <m>.unbind(0)
- <M>.mul_(<n>)
- <M>[<i>] = <v>
- <M>[s.idx] = <n>
- <M>[s.idx].add_(<v>)
- <M>.copy_(<m>)
- <M>[:, 1].zero_()
- <M>.t()[1].fill_(<n>)
- <M>[<M> > 0.5] = 0.1
- <M>[:, s.order] *= 0.5
- <M>.add_(<m>)
- <V>.sin_()
- <V>.clamp_(-1, 1)
- <V>.add_(<v>)
- <V>[:2] = <V>[1:].clone()
- <V>.masked_fill_(s.mask, <n>)
- <V>[s.idx] = <r>
- <V> *= <n>
- <M>[<i>, 1:] -= 0.25
- s.count64.add_(1)
- s.count64[s.idx] += k
- s.mask.logical_not_()
- s.single.mul_(0.5)
- s.single[s.idx] = 1.5
- s.half.add_(1)
- s.total.add_(<r>.detach())
- s.empty.add_(1)
- s.idx.fill_(<i>)
- s.order.copy_(s.order.flip(0))
- with torch.no_grad():
      s.w.sub_(0.1 * <m>.tanh())
- with torch.no_grad():
      s.b[1:].mul_(0.9)
      s.c.add_(0.1)
- with torch.no_grad():
      s.buf.mul_(0.9)
      s.buf[<i>].add_(<v>)
- s.w.data.mul_(0.9)
- s.w.data = s.w.data * 0.9
- s.hist.lerp_(<v>.detach(), 0.1)
- s.w.detach()[0].mul_(0.5)
- s.row.add_(0.25)
- s.column.mul_(0.5)
- s.part.zero_()
- extra['m'].detach().mul_(0.5)
- with torch.no_grad():
      x.mul_(0.9)
--- (<r> + s.c * 0.5).backward()
--- (<m> * s.w).sum().backward()
--- ((<m> + s.b) ** 2).mean().backward()
- <=r> = (<m> * s.w * s.b).sum()
  <new>.backward(retain_graph=True)
  <new>.backward()
- <=r> = (<m> * s.w).sin().sum()
  (<new> * 0.5).backward(retain_graph=True)
- <=m>, _ = torch.autograd.grad(
      (<m> * s.w).sin().sum(), [s.w, s.b], create_graph=True, allow_unused=True
  )
  (<new> * <new>).sum().backward()
- <=m> = torch.autograd.grad((<m> * s.w ** 2).sum(), s.w)[0]
- <=m> = torch.autograd.grad((s.w ** 3 * <m>).sum(), s.w, create_graph=True)[0]
- <=m> = <m> * s.w
  <new>.register_hook(lambda g: g * <n>)
  <new>.sum().backward()
- <=m> = <m> * s.w
  <new>.retain_grad()
  <new>.sin().sum().backward()
  s.hist.copy_(<new>.grad[0])
- s.w.grad = None
- s.w.grad = s.b.grad = None
- s.w.grad = <m>.detach() * 1.0
- if s.w.grad is not None:
      s.w.grad.zero_()
- if s.b.grad is not None:
      s.b.grad.mul_(0.5)
- for p in (s.w, s.b):
      if p.grad is not None:
          p.data.sub_(0.1 * p.grad)
- with torch.no_grad():
      for p in [s.w, s.c]:
          if p.grad is not None:
              p -= <n> * 0.01 * p.grad
              p.grad = None
- torch.nn.utils.clip_grad_norm_([s.w, s.b], 0.5)
- torch.nn.utils.clip_grad_value_([s.w, s.b], 0.3)
- s.b.requires_grad_(not s.b.requires_grad)
- s.c.requires_grad_(<c>)
- <=m> = <m>.detach().requires_grad_()
  (<new> * s.w).sum().backward()
  s.hist.add_(<new>.grad[<i>])
- s.sgd.step()
- s.adam.step()
- s.sgd.zero_grad()
- s.adam.zero_grad(set_to_none=False)
- s.sgd.zero_grad()
  (<m> * s.w + s.b).pow(2).mean().backward()
  s.sgd.step()
  s.sched.step()
- s.adam.zero_grad()
  (<m> * s.w * s.c).sum().backward()
  s.adam.step()
  s.cosine.step()
- s.adamw.zero_grad(set_to_none=False)
  s.line(<m>).pow(2).mean().backward()
  s.adamw.step()
- for group in s.sgd.param_groups:
      group['lr'] = 0.1 / (1 + s.count)
- s.sgd.param_groups[0]['lr'] *= 0.9
- s.net.train(<c>)
- s.line.eval()
- s.drop.train(flag)
- s.net(<m>).sum().backward()
- s.count += 1
- s.count += k
- s.rate *= 0.9
- s.rate = 0.1 * <n>
- s.first = False
- s.first = not s.first
- s.mode = 'cos' if s.mode == 'sin' else 'sin'
- s.limit -= 1
- s.log.append(<n>)
- s.log.append(<r>.detach())
- s.log.append(s.count)
- if len(s.log) > 2:
      s.log.clear()
- s.log[:] = s.log[-2:]
- s.table['n'] += 1
- s.table['t'] = <v>.detach()
- s.table['u'] = <n>
- s.table.pop('u', None)
- s.table.setdefault('d', []).append(<n>)
- s.table.update(n=s.table['n'] + 1, z=k)
- s.table[f'k{s.count % 2}'] = <v>.detach()
- s.nested['a'][0] += 1
- s.nested['a'][1]['b'] = <n>
- s.nested['t'][1].append(<v>.detach())
- s.nested['t'][0].mul_(0.5)
- s.names.add('b')
- s.names.discard('a')
- s.names ^= {'a'}
- s.queue.append(<r>.detach())
- s.queue.append(<n>)
- s.cfg.rate *= 0.9
- s.cfg.steps += 1
- s.cfg = Config(<n>, s.cfg.steps + 1, {})
- s.cfg.extra['z'] = <n>
- s.cfg.note = 'seen'
- s.cfg = dataclasses.replace(s.cfg, steps=0)
- s.slots.k += 1
- s.slots.t = <v>.detach()
- s.slots.t, s.hist = s.hist, s.slots.t
- s.point = s.point._replace(k=<n>)
- s.point = Point(s.point.k, <v>.detach())
- s.space.k = <n>
- s.space.inner.k -= 1
- s.space.inner = Slots(s.space.inner.k + 1, None)
- setattr(s.space, 'k', s.space.k * 0.5)
- vars(s.space)['k'] = <n>
- s.array[1] += 0.5
- s.array = s.array * 0.5
- s.tensors[0], s.tensors[1] = s.tensors[1], s.tensors[0]
- s.tensors.append(s.tensors.pop(0))
- s.tensors = [*s.tensors[1:], <v>.detach()]
- s.tensors[<i>] = <v>.detach()
- s.tensors[0].add_(1)
- for t in s.tensors:
      t.mul_(0.5)
- s.tensors.reverse()
- s.pair = (<v>.detach(), s.pair[1] + 0.1)
- s.h = <m>.detach() if s.h is None else (s.h * 0.5 + <m>).detach()
- s.h = <m>.detach()
- s.h = None
- s.h = [s.h, <r>.detach()] if s.h is None else None
- s.hist = <v>.detach()
- s.hist = s.hist * 0.5 + <v>.detach()
- s.buf = <m>.detach()
- if s.state is None:
      s.state = (<v>.detach(), [s.hist * 0])
  h, (c,) = s.state
  s.state = (h * 0.5 + c, [c + <v>.detach()])
- total += 1
- kept = kept + <r>.detach()
- kept.add_(<r>.detach())
- total = total * 0.5 + n
- for name, value in s.table.items():
      if name == 't':
          value.mul_(0.5)
      else:
          s.rate = 0.25
- s.best = max(getattr(s, 'best', 0), k)
- if not hasattr(s, 'later'):
      s.later = <v>.detach()
  else:
      s.later = s.later * 0.5
- del s.table['t']
  s.table['t'] = <v>.detach()
---- if <c>:
      <block>
---- if <c>:
      <block>
  else:
      <block>
- for i in range(<k>):
      <block>
- for i in range(2):
      s.count += i
      <block>
- while s.count < s.limit:
      s.count += 1
      <block>
- with torch.no_grad():
      <block>
- with torch.set_grad_enabled(<c>):
      <block>
- try:
      <block>
      raise KeyError(k)
  except KeyError:
      s.count += 1
  finally:
      s.rate *= 0.9
- if s.count == 7:
      raise ValueError(s.count)
- with Held(s, 'rate', s.rate * <n>):
      <block>
- def part(t, factor=<n>):
      nonlocal_free = s.count
      return t * factor + nonlocal_free
  <=m> = part(<m>)
- s.log.extend([<n> for _ in range(2)])
  del s.log[:-3]
- with torch.enable_grad():
      <block>
- assert s.count < 50
"""

RANDOM_STATEMENTS = """
- s.hist.normal_(0, 0.5)
- <V>.uniform_()
- s.noise = torch.rand(3, dtype=torch.float64)
- s.buf.bernoulli_(0.5)
"""

HOOKS = """
- s.w.register_hook(lambda g: g * s.rate)
- s.b.register_hook(lambda g: g.clamp(-0.2, 0.2))
- s.w.register_post_accumulate_grad_hook(halve)
- s.b.register_post_accumulate_grad_hook(descend)
- s.net.register_forward_hook(lambda m, a, out: out * s.rate)
- s.line.register_forward_pre_hook(lambda m, a: (a[0] * 2,))
- s.line.register_full_backward_hook(scale_input)
"""

RESULTS = """
-- <m>
- <r>
- (<m>, <r>)
- {'b': <m>, 'a': <r>}
- None
- x
- s.w
- s.buf
- [<v>, <v>]
- <v>.detach()
- s.count, <r>
- Config(<r>, k, {'v': <v>})
- Point(k, <v>)
- [<m>, {'z': (<r>, None)}]
- s.hist
- <r>.detach(), n
- extra['m'], <m>
"""

CHANGES = """
- s.rate = 0.25
- s.count = 1
- s.first = True
- s.mode = 'cos'
- s.h = None
- s.log.append(0.5)
- s.w.grad = None
- s.b.requires_grad_(False)
- s.b.requires_grad_(True)
- s.buf.add_(0.5)
- s.row.mul_(0.5)
- s.hist.mul_(0.5)
- with torch.no_grad():
      s.hist.add_(1)
- s.cfg = Config(0.75, 3, {'z': 2})
- s.cfg.extra['z'] = 0.25
- s.tensors.reverse()
- s.tensors[0] = numbers(3) * 3
- s.net.eval()
- s.net.train()
- s.line.train()
- s.sgd.param_groups[0]['lr'] = 0.2
- s.slots.k = 0.25
- s.table['n'] = 0.5
- s.hist = numbers(3) + 1
- with torch.no_grad():
      s.w.mul_(0.9)
- s.w.data = s.w.data * 0.5
- s.pair = (numbers(3), 0.25)
- s.nested['a'][1]['b'] = 2
- s.names.add('c')
- s.names.discard('a')
- s.idx.fill_(0)
- s.idx = torch.tensor(0)
- s.space.inner.k = 2
- s.point = Point(2, numbers(3))
- s.array[1] = 0.5
- s.queue.clear()
- (s.w.sum() * s.c).backward()
- s.outer = s.w * 3
- s.limit += 2
- s.space.k = 0.125
- s.w.grad = torch.ones_like(s.w)
- s.column.mul_(0.5)
- s.single = s.single * 2
- s.gain = lambda: 0.5
- s.state = None
- s.sgd.zero_grad(set_to_none=False)
- s.half = s.half * 2
- s.mask = ~s.mask
- s.cfg.steps = 5
"""

PASSES = """
- total_of(out).backward()
- total_of(out).backward(retain_graph=True)
"""

ARGUMENTS = """
- numbers(2, 3) * <f>
- numbers(2, 3) + <f>
- leaf(2, 3)
- s.w * <f>
- s.buf
- numbers(2, 3).t().contiguous().t()
"""

EXPRESSIONS = """
<m>
-- x
- s.w
- s.buf
- s.outer
- <n> * <m>
- <m> * <v>
- <m> + <m>
- <m> - <v>
- <m>.sin()
- <m>.tanh()
- <m> * <r>
- <m>.detach()
- <m>.clone()
- (<m>).relu()
- Scaled.apply(<m>)
- Remembered.apply(<m>, <v>)
- Split.apply(<m>)[1]
- torch.stack([<v>, <v>])
- <v>.expand(2, 3).clone()
- <m>.flip(0)
- torch.where(<m> > 0.1, <m>, <v>)
- <m>.t().contiguous().t()
- <m>.softmax(1)
- <m> ** 2
- (<m>).clamp(-1, 1)
- torch.cat([<m>, s.empty])
- <m> * s.mask
- extra['m']
- extra['t'][1][0]
- <m>.index_select(1, s.order)
- s.net(<m>)
- s.line(<m>)
- s.cell(<m>)
- F.mse_loss(<m>, <m>, reduction='none')
- torch.func.vmap(lambda t: (t * s.b).sin())(<m>)
- torch.func.grad(lambda t: (t * s.b).sin().sum())(<m>)
- torch.func.jvp(lambda t: t.sin() * s.hist, (<m>,), (<m>,))[1]
- torch.func.vjp(lambda t: t.tanh() * <n>, <m>)[1](<m>)[0]
- s.inner(<m>)
- helper(s.rate, s.cfg, <m>)
- <m>.view(3, 2).reshape(2, 3)
- <m>.cumsum(1) * 0.5
- checkpoint(lambda t: t.sin() * s.b, <m>, use_reentrant=False)
- sum(part.sum() for part in <m>.unbind(0)) * <m>
<v>
- s.b
- s.hist
- s.row
- <m>[<i>]
- <m>[s.idx]
- <m>.sum(0)
- <m>.mean(0)
- <v> * <n>
- <m>.unbind(0)[<i>]
- <v> + s.tensors[<i>]
- s.pair[0]
- s.table['t']
- <v>.sin()
- <m>.select(0, <i>)
- s.nested['t'][1][0]
- s.slots.t
- s.point.t
- <v>[s.order]
- <v> + s.empty.sum(0)
- <m>[<m>.square().sum(1).argmax()]
- <v> * s.count64
- <v> * s.single
- <v> - s.half
- s.w.new_tensor(s.array)
- extra['t'][0]
- <v>.detach()
- <v> * s.mask
- torch.nn.functional.normalize(<v>, dim=0)
- s.part.mean() * <v>
- <v> * s.pair[1]
- <v>.masked_fill(s.mask, <n>)
- torch.full((3,), <n>, dtype=torch.float64)
<r>
- s.c
- <m>.sum()
- <v>.mean()
- (<m> * <m>).mean()
- <m>[<i>, 1]
- <m>.amax()
- s.total
- <v>[s.idx]
- <r> * <n>
- <r>.tanh()
- <m>[:0].sum()
- <m>.pow(2).sum().sqrt()
- s.column.sum()
- F.mse_loss(<m>, <m>)
<n>
- 0.5
- 2
- -1.5
-- n
- k
-- s.rate
- s.count
- s.cfg.rate
- s.cfg.steps
- s.slots.k
- s.table['n']
- s.nested['a'][1]['b']
- len(s.log)
- s.point.k
- s.space.k
- s.space.inner.k
- scale
- s.nested['a'][0]
- s.cfg.extra.get('z', 1)
- s.gain()
- s.sgd.param_groups[0]['lr']
- float(s.array[1])
- (1 if flag else 3)
- len(s.queue)
<i>
- 0
- 1
- k % 2
- -1
- s.count % 2
<c>
- flag
- k > 1
- s.count % 2 == 0
- s.first
- s.mode == 'sin'
- s.h is None
- len(s.log) > 1
- 'a' in s.names
- s.cfg.steps > 2
- n > 1
- s.line.training
- 'z' in s.cfg.extra
- not s.queue
- s.count < s.limit
- s.w.grad is None
- s.w.requires_grad
- torch.is_grad_enabled()
- isinstance(n, int)
- s.pair[1] > 0.4
- hasattr(s.cfg, 'note')
"""

RANDOM = """
<m>
- torch.rand(2, 3, dtype=torch.float64)
- F.dropout(<m>, 0.4, flag)
- s.drop(<m>)
<v>
- torch.randn(3, dtype=torch.float64) * 0.5
- torch.rand_like(<v>)
- torch.rand(3, generator=s.gen, dtype=torch.float64)
- <v>[torch.randperm(3)]
"""


def productions(text):
    """The productions of a grammar's text, each as often as it has dashes."""
    choices = []
    for entry in re.split(r"^(?=-)", text.strip(), flags=re.MULTILINE):
        if entry.strip():
            dashes, _, first = entry.rstrip().partition(" ")
            choices += [re.sub(r"\n  ", "\n", first)] * len(dashes)
    return choices


def families(text):
    """The productions of each nonterminal."""
    parts = re.split(r"^<(\w)>$", text.strip(), flags=re.MULTILINE)[1:]
    return {name: productions(lines) for name, lines in zip(parts[::2], parts[1::2], strict=True)}


ATTRIBUTE = re.compile(r"\bs\.(\w+)")
NONTERMINAL = re.compile(r"<(=?\w+)>")
ATTRIBUTES = {ATTRIBUTE.search(line).group(1): line for line in productions(STATE)}

# nonterminals that are no end of an expression
TENSORS = re.compile("<[mvr]>")

# views that are made outside: a compiled function may not write where it also reads them, so few
# programs have them
VIEWS = {"row", "part", "column"}


class Program(NamedTuple):
    """The parts of a program, each a list of statements: `state` makes what the function uses,
    `body` is that function, `script` calls it and changes state between the calls.

    reach: how the function comes to `s`; plain: whether PyTorch computes the same numbers.
    """

    state: list[str]
    body: list[str]
    script: list[str]
    reach: str
    plain: bool

    def source(self) -> str:
        """Functions `setup`, which fills `s`, and `make`, which returns the function and another
        one for its variables.
        """
        body = "\n".join(self.body)
        outer = [name for name in ("total", "kept") if re.search(rf"\b{name}\b", body)]
        lines = [f"nonlocal {', '.join(outer)}"] if outer else []
        if self.reach in OWNERS:
            lines.append(OWNERS[self.reach])
        head, tail = REACHES[self.reach]
        function = head + indented("\n".join([*lines, body]), head.count("\n"))
        make = f"total, kept = 0, numbers()\n{function}\n{tail}, lambda: (total, kept)"
        setup = indented("\n".join(self.state))
        return f"def setup(s):\n{setup}\n\n\ndef make(s):\n{indented(make)}\n"

    def __str__(self):
        return self.source() + "\n\n" + "\n".join(self.script)


def indented(text, depth=1):
    return textwrap.indent(text, "    " * depth)


PARAMETERS = "x, n=1, *, k=1, flag=True, extra=None, scale=0.5"

# what comes before and after the body of the function
REACHES = {
    "closure": (f"def step({PARAMETERS}):\n", "return step"),
    "default": (f"def step({PARAMETERS}, s=s):\n", "return step"),
    "method": (
        f"class Trainer:\n    def step(self, {PARAMETERS}):\n",
        "trainer = Trainer()\ntrainer.state = s\nreturn trainer.step",
    ),
    "module": (
        f"class Net(nn.Module):\n    def forward(self, {PARAMETERS}):\n",
        "net = Net()\nnet.state = s\nreturn net",
    ),
}
OWNERS = {"method": "s = self.state", "module": "s = self.state"}


# ---- drawing


class Writer:
    """Draws text from the grammar. `scopes`: the variables by nonterminal, of each open block."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.scopes = [[]]
        self.count = 0
        self.expressions = families(EXPRESSIONS)
        self.statements = productions(STATEMENTS)
        self.is_plain = self.random.random() < 0.8
        if not self.is_plain:
            for name, more in families(RANDOM).items():
                self.expressions[name] = self.expressions[name] + more * 3
            self.statements = self.statements + productions(RANDOM_STATEMENTS) * 3
        # few kinds of arguments, so that traces serve later calls
        self.arguments = self.random.choices(productions(ARGUMENTS), k=2)
        # few attributes, so that lines of one program meet in them
        self.favourites = set(self.random.sample(sorted(ATTRIBUTES), 14))
        self.excluded = set() if self.random.random() < 0.2 else VIEWS

    def pick(self, choices):
        """One of the choices, rather one about the favourite attributes."""
        for _ in range(4):
            chosen = self.draw(choices)
            if self.favourites.issuperset(ATTRIBUTE.findall(chosen)):
                break
        return chosen

    def draw(self, choices):
        """One of the choices that name no excluded attribute."""
        while True:
            chosen = self.random.choice(choices)
            if self.excluded.isdisjoint(ATTRIBUTE.findall(chosen)):
                return chosen

    def variables(self, kind):
        return [name for scope in self.scopes for letter, name in scope if letter == kind]

    def expression(self, kind, depth=0):
        if kind in "MV":
            names = self.variables(kind.lower())
            if not names or self.random.random() < 0.3:
                return {"M": "s.buf", "V": "s.hist"}[kind]
            return self.random.choice(names)
        if kind == "k":
            return self.random.choice(["k", "2", "s.count % 3"])
        names = self.variables(kind)
        if names and self.random.random() < 0.5:
            return self.random.choice(names)
        choices = self.expressions[kind]
        if depth > 1:
            choices = [choice for choice in choices if not TENSORS.search(choice)]
        return bracketed(self.filled(self.pick(choices), depth + 1))

    def filled(self, text, depth=0, new=None):
        """The text with something in the place of each nonterminal."""

        def replaced(match):
            kind = match.group(1)
            return new if kind == "new" or kind[0] == "=" else self.expression(kind, depth)

        return NONTERMINAL.sub(replaced, text)

    def statement(self, depth=0):
        choices = self.statements
        if depth > 1:
            choices = [choice for choice in choices if "<block>" not in choice]
        text = self.pick(choices)
        while "<block>" in text:
            block = self.block(depth + 1)
            place = text.index("<block>")
            indent = place - text.rfind("\n", 0, place) - 1
            text = text.replace("<block>", block.replace("\n", "\n" + " " * indent), 1)
        new = re.search("<=(.)>", text)
        name = None
        if new:
            self.count += 1
            name = f"{new.group(1)}{self.count}"
        text = self.filled(text, new=name)
        if new:
            self.scopes[-1].append((new.group(1), name))
        return text

    def block(self, depth):
        self.scopes.append([])
        try:
            return "\n".join(self.statement(depth) for _ in range(self.random.randint(1, 3)))
        finally:
            self.scopes.pop()

    def call(self, body, numbers):
        """A call of the function, whose numbers are among these."""
        draw = self.random
        parts = [self.argument(), str(draw.choice(numbers))]
        parts += [f"k={draw.choice([1, 1, 2, 3])}", f"flag={draw.random() < 0.8}"]
        if "extra" in body:
            inner = f"'m': {self.argument()}, 't': (numbers(3), [{self.argument()}])"
            parts.append(f"extra={{{inner}}}")
        return f"out = step({', '.join(parts)})"

    def argument(self):
        factor = str(self.random.choice([0.5, 1.0, 1.5]))
        return self.random.choice(self.arguments).replace("<f>", factor)

    def script(self, body):
        """Calls, most of them like the one before, with passes and changes between them."""
        draw = self.random
        numbers = draw.choice([[0.5], [2], [0.5, 1.5, 2.0], [1, 2, 3]])
        known = needed([body])
        changes = [line for line in productions(CHANGES) if needed([line]) <= known]
        lines, call = [], self.call(body, numbers)
        for _ in range(draw.randint(5, 7)):
            lines.append(call)
            if draw.random() < 0.4:
                lines.append(draw.choice(productions(PASSES)))
            if changes and draw.random() < 0.3:
                lines.append(draw.choice(changes))
            if draw.random() < 0.3:
                call = self.call(body, numbers)
        return lines


def bracketed(text):
    """An expression in brackets, where an operator beside it might take it apart."""
    node = ast.parse(text, mode="eval").body
    is_closed = isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant))
    return text if is_closed else f"({text})"


def needed(lines):
    """The attributes that lines use, with those that these are made of."""
    names = set()
    queue = ATTRIBUTE.findall("\n".join(lines))
    while queue:
        name = queue.pop()
        if name in ATTRIBUTES and name not in names:
            names.add(name)
            queue += ATTRIBUTE.findall(ATTRIBUTES[name])
    return names


def state_for(lines):
    """The statements that make the attributes which lines use."""
    names = needed(lines) | {"w", "b", "c"}
    return [line for name, line in ATTRIBUTES.items() if name in names]


def random_program(seed) -> Program:
    writer = Writer(seed)
    body = [writer.statement() for _ in range(writer.random.randint(3, 9))]
    body.append("return " + writer.filled(writer.random.choice(productions(RESULTS))))
    script = writer.script("\n".join(body))
    hooks = [hook for hook in productions(HOOKS) if needed([hook]) <= needed(body)]
    hooks = [hook for hook in hooks if writer.random.random() < 0.15]
    state = state_for([*body, *hooks, *script]) + hooks
    reach = writer.random.choice(list(REACHES))
    # PyTorch's backward uses values that were written through `data` after the forward pass
    sets_data = any(".data" in line for line in [*body, *script])
    return Program(state, body, script, reach, writer.is_plain and not sets_data)
