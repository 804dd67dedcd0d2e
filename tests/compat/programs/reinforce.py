"""Policy gradients: REINFORCE, then an actor with a Gaussian policy and a critic."""

import argparse
import json

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Bernoulli, Categorical, Independent, Normal, kl_divergence

parser = argparse.ArgumentParser(description="PyTorch REINFORCE example")
parser.add_argument("--gamma", type=float, default=0.99)
parser.add_argument("--seed", type=int, default=543)
args = parser.parse_args()
torch.manual_seed(args.seed)
rng = np.random.RandomState(args.seed)
eps = np.finfo(np.float32).eps.item()


def fill(net):
    for p in net.parameters():
        p.data.copy_(torch.from_numpy(rng.randn(*p.shape) * 0.3))
    return net


class Policy(nn.Module):
    def __init__(self):
        super(Policy, self).__init__()
        self.affine1 = nn.Linear(4, 8)
        self.affine2 = nn.Linear(8, 3)
        self.saved_log_probs, self.entropies, self.rewards = [], [], []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.affine2(x), dim=1)


policy = fill(Policy())
optimizer = optim.Adam(policy.parameters(), lr=1e-2)


def select_action(state):
    state = torch.from_numpy(state).float().unsqueeze(0)
    m = Categorical(policy(state))
    assert 0 <= m.sample().item() < 3
    action = torch.tensor([rng.randint(3)])  # one that does not depend on the library
    policy.saved_log_probs.append(m.log_prob(action))
    policy.entropies.append(m.entropy())
    return action.item()


def finish_episode():
    R, policy_loss, returns = 0, [], []
    for r in policy.rewards[::-1]:
        R = r + args.gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    for log_prob, R in zip(policy.saved_log_probs, returns):
        policy_loss.append(-log_prob * R)
    optimizer.zero_grad()
    policy_loss = torch.cat(policy_loss).sum() - 0.01 * torch.cat(policy.entropies).sum()
    policy_loss.backward()
    optimizer.step()
    del policy.rewards[:], policy.saved_log_probs[:], policy.entropies[:]
    return policy_loss.item()


losses = []
for _ in range(3):
    state = rng.randn(4)
    for _ in range(6):
        action = select_action(state)
        state = 0.9 * state + 0.1 * (action - 1)
        policy.rewards.append(float(-np.abs(state).sum()))
    losses.append(finish_episode())


class Actor(nn.Module):
    """A Gaussian policy with a scale that does not depend on the state."""

    def __init__(self):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 2))
        self.log_std = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        return Independent(Normal(self.mean(x), self.log_std.exp()), 1)


actor, critic = fill(Actor()), fill(nn.Linear(3, 1))
old = fill(Actor())
old.load_state_dict(actor.state_dict())
optimizer = optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-2)
ppo = []
states = torch.from_numpy(rng.randn(8, 3)).float()
actions = torch.from_numpy(rng.randn(8, 2)).float()
rewards = -(actions - states[:, :2]).pow(2).sum(-1)
for _ in range(3):
    dist, value = actor(states), critic(states).squeeze(-1)
    with torch.no_grad():
        before = old(states).log_prob(actions)
    advantage = (rewards - value).detach()
    ratio = torch.exp(dist.log_prob(actions) - before)
    clipped = torch.clamp(ratio, 0.8, 1.2) * advantage
    loss = -torch.min(ratio * advantage, clipped).mean() + 0.5 * F.mse_loss(value, rewards)
    loss = loss - 0.01 * dist.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(actor.parameters(), 0.5)
    optimizer.step()
    with torch.no_grad():
        kl = kl_divergence(old(states), actor(states)).mean()
    ppo.append([loss.item(), kl.item()])
coin = Bernoulli(logits=actor.log_std)
sampled = actor(states).rsample().shape
told = {"losses": losses, "ppo": ppo, "coin": coin.probs.tolist(), "shape": list(sampled)}
print(json.dumps(told))
