# %% [markdown]
# # Reinforcement learning with a replay buffer
#
# You write a pole on a cart from its equations of motion, and a network learns to balance it:
# deep Q-learning, with a replay buffer, a target network, and a compiled update. Environment and
# buffer are plain NumPy; the networks are tensors.
#
# You need to know `nn.Module` and optimizers. What Q-learning is, you read here.

# %%
import matplotlib.pyplot as plt
import numpy as np

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

torch.manual_seed(0)
random = np.random.default_rng(0)

# %% [markdown]
# ## The cart and the pole
#
# A cart runs on a rail, and a pole stands on it on a hinge. At every step you push the cart left
# or right with 10 N. With \( x \) for the place of the cart, \( \theta \) for the angle of the
# pole from the vertical, \( M \) for the whole mass, \( m \) for that of the pole and \( l \) for
# half of its length:
#
# $$ u = \frac{F + m l \dot\theta^2 \sin\theta}{M}, \quad
# \ddot\theta = \frac{g\sin\theta - u\cos\theta}{l\,(4/3 - m\cos^2\theta / M)}, \quad
# \ddot x = u - \frac{m l \ddot\theta\cos\theta}{M} $$
#
# A class for many carts at once: every array has one row for each. An episode ends as a failure
# where the cart is more than 2.4 m from the middle or the pole more than 12 degrees from the
# vertical, and as a success after 200 steps of 0.02 s.

# %%
GRAVITY, POLE, WHOLE, HALF, PUSH, DT = 9.8, 0.1, 1.1, 0.5, 10.0, 0.02
LONGEST = 200


class Carts:
    def __init__(self, count):
        self.state = np.zeros((count, 4), np.float32)  # place, velocity, angle, angular velocity
        self.age = np.zeros(count, int)
        self.begin(np.ones(count, bool))

    def begin(self, rows):
        self.state[rows] = random.uniform(-0.05, 0.05, (rows.sum(), 4))
        self.age[rows] = 0

    def step(self, action):
        """The new states, and for each whether it failed and whether its episode is over."""
        _, dx, angle, dangle = self.state.T
        sin, cos = np.sin(angle), np.cos(angle)
        u = (np.where(action == 1, PUSH, -PUSH) + POLE * HALF * dangle**2 * sin) / WHOLE
        ddangle = (GRAVITY * sin - u * cos) / (HALF * (4 / 3 - POLE * cos**2 / WHOLE))
        ddx = u - POLE * HALF * ddangle * cos / WHOLE
        self.state = self.state + DT * np.stack([dx, ddx, dangle, ddangle], 1).astype(np.float32)
        self.age += 1
        failed = (abs(self.state[:, 0]) > 2.4) | (abs(self.state[:, 2]) > np.radians(12))
        return self.state.copy(), failed, failed | (self.age >= LONGEST)


# %% [markdown]
# The return of an episode is the number of its steps. Pushes at random keep the pole up for about
# 20 of them.


# %%
def returns(choose, episodes=50):
    """The returns of episodes in which `choose` maps states to actions."""
    carts, alive, total = Carts(episodes), np.ones(episodes, bool), np.zeros(episodes)
    for _ in range(LONGEST):
        total += alive
        _, failed, _ = carts.step(choose(carts.state))
        alive &= ~failed
    return total


by_chance = returns(lambda state: random.integers(2, size=len(state))).mean()
print(f"mean return of random pushes: {by_chance:.0f} steps")

# %% [markdown]
# ## The replay buffer
#
# It keeps the last transitions, and gives random batches of them. A batch mixes many episodes and
# old and new experience, so that its examples are nearly independent.


# %%
class ReplayBuffer:
    def __init__(self, capacity):
        self.columns = {
            "state": np.zeros((capacity, 4), np.float32),
            "action": np.zeros(capacity, np.int64),
            "next_state": np.zeros((capacity, 4), np.float32),
            "failed": np.zeros(capacity, np.float32),
        }
        self.capacity, self.added = capacity, 0

    def add(self, **values):
        count = len(values["action"])
        rows = (self.added + np.arange(count)) % self.capacity
        for name, value in values.items():
            self.columns[name][rows] = value
        self.added += count

    def sample(self, count):
        rows = random.integers(min(self.added, self.capacity), size=count)
        return [torch.from_numpy(column[rows]) for column in self.columns.values()]


# %% [markdown]
# ## The networks
#
# \( Q(s, a) \) is the return to expect after the action \( a \) in the state \( s \); the network
# gives it for both actions. The best action is the one with the larger value. Later rewards count
# less, by the factor `DISCOUNT` for each step, so that values stay finite: at most 1 / (1 - 0.98)
# = 50.
#
# The angle stays below 0.2 and velocities are near 2, so the network first scales its inputs.

# %%
DISCOUNT = 0.98
SCALE = torch.tensor([0.5, 0.5, 5.0, 0.5])


class Q(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)
        )

    def forward(self, state):
        return self.layers(state * SCALE)


online, target = Q(), Q()
target.load_state_dict(online.state_dict())
target.requires_grad_(False)
optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)

# %% [markdown]
# ## The update
#
# The value of a state is the reward, 1 for each step, plus the discounted value of the next
# state, or 0 after a failure. The end of time after 200 steps is no failure, and the value goes
# on there.
#
# Two things keep this from chasing its own tail. The next value comes from the *target network*,
# a slow copy of the online network. And the online network chooses the next action while the
# target network values it, so that one error is not taken twice for a gain (*double* Q-learning).
#
# The compiled step changes both networks: `lerp_` moves the target by one hundredth towards the
# online network.


# %%
@torch.compile
def update(state, action, next_state, failed):
    with torch.no_grad():
        next_action = online(next_state).argmax(1, keepdim=True)
        next_value = target(next_state).gather(1, next_action)[:, 0]
        wanted = 1 + DISCOUNT * (1 - failed) * next_value
    optimizer.zero_grad()
    value = online(state).gather(1, action[:, None])[:, 0]
    loss = F.smooth_l1_loss(value, wanted)
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
            slow.lerp_(fast, 0.01)
    return loss.detach()


@torch.compile
def best_action(state):
    with torch.no_grad():
        return online(state).argmax(1)


def choose(state):
    return best_action(torch.from_numpy(state)).numpy()


# %% [markdown]
# ## Training
#
# Sixteen carts run at once. Some actions are random, at first all, in the end one in twenty, so
# that the buffer sees what the policy would not do. Every 100 rounds 50 episodes without random
# actions give the point of a curve.

# %%
ROUNDS = 1500

carts, buffer, curve = Carts(16), ReplayBuffer(20_000), []
for i in range(ROUNDS + 1):
    if i % 100 == 0:
        curve.append(returns(choose).mean())
    state = carts.state.copy()
    explore = random.random(16) < max(0.05, 1 - i / 600)
    action = np.where(explore, random.integers(2, size=16), choose(state))
    next_state, failed, over = carts.step(action)
    buffer.add(state=state, action=action, next_state=next_state, failed=failed)
    carts.begin(over)
    if i >= 20:
        update(*buffer.sample(128))
print("mean returns:", [round(value) for value in curve])

# %%
figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
axis.plot(np.arange(len(curve)) * 100 * 16 / 1000, curve, marker=".")
axis.axhline(by_chance, color="0.6", linestyle=":", label="random pushes")
axis.set(title="Mean return of 50 episodes", ylim=(0, 205))
axis.set(xlabel="transitions seen (thousands)", ylabel="steps until the pole falls (at most 200)")
_ = axis.legend(loc="center right")

# %% [markdown]
# ## What the policy does
#
# One episode: the angle of the pole, and the place of the cart. On the right the learned policy
# for a cart at rest in the middle: where it pushes right, by angle and angular velocity.

# %%
one, path = Carts(1), []
for _ in range(LONGEST):
    path.append(one.state[0].copy())
    one.step(choose(one.state))
path, seconds = np.array(path), np.arange(LONGEST) * DT

a, w = np.meshgrid(np.linspace(-0.2, 0.2, 60), np.linspace(-2, 2, 60))
grid = np.stack([0 * a, 0 * a, a, w], -1).reshape(-1, 4).astype(np.float32)
with torch.no_grad():
    values = online(torch.from_numpy(grid))
advantage = (values[:, 1] - values[:, 0]).reshape(60, 60).numpy()

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
left.plot(seconds, np.degrees(path[:, 2]), label="angle of the pole (degrees)")
left.plot(seconds, 10 * path[:, 0], label="place of the cart (dm)")
left.set(title="One episode", xlabel="time (s)", ylabel="degrees; dm")
left.legend()
limit = abs(advantage).max()
colors = right.pcolormesh(np.degrees(a), w, advantage, cmap="RdBu", vmin=-limit, vmax=limit)
figure.colorbar(colors, label="Q(right) - Q(left) (discounted steps)")
right.set(title="Which push is better", xlabel="angle (degrees)")
_ = right.set(ylabel="angular velocity (rad/s)")

# %% [markdown]
# ## Check
#
# Single evaluations go up and down, as always in Q-learning. Take the best of the last five.

# %%
final = max(curve[-5:])
print(f"mean return: {final:.0f} steps of {LONGEST}")
assert final > 150 and by_chance < 40
