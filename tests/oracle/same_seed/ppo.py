"""Proximal policy optimization of an actor and a critic, in an environment of a few lines."""

import torch
from torch import nn
from torch.distributions import Categorical
from torch.utils.data import BatchSampler, SubsetRandomSampler

torch.manual_seed(543)


class Corridor:
    """A point is pushed left or right, and is to stay near the middle."""

    def reset(self):
        self.state = torch.empty(4).uniform_(-0.05, 0.05)
        return self.state

    def step(self, action):
        push = 1.0 if action == 1 else -1.0
        velocity = self.state[1] + 0.1 * push - 0.02 * self.state[0]
        position = self.state[0] + 0.1 * velocity
        tilt = 0.9 * self.state[3] - 0.05 * push
        self.state = torch.stack([position, velocity, self.state[2] + 0.1 * tilt, tilt])
        return self.state, 1.0 - position.abs().item()


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Dropout(p=0.1))
        self.actor = nn.Linear(32, 2)
        self.critic = nn.Linear(32, 1)
        for layer, gain in ((self.body[0], 2**0.5), (self.actor, 0.01), (self.critic, 1.0)):
            nn.init.orthogonal_(layer.weight, gain)
            nn.init.constant_(layer.bias, 0.0)

    def forward(self, state):
        hidden = self.body(state)
        return Categorical(logits=self.actor(hidden)), self.critic(hidden).squeeze(-1)


def rollout(env, model, length=32):
    states, actions, rewards, log_probs, values = [], [], [], [], []
    state = env.reset()
    with torch.no_grad():
        for _ in range(length):
            policy, value = model(state)
            action = policy.sample()
            states.append(state)
            actions.append(action)
            log_probs.append(policy.log_prob(action))
            values.append(value)
            state, reward = env.step(action.item())
            rewards.append(reward)
    returns, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + 0.99 * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    advantages = returns - torch.stack(values)
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    return torch.stack(states), torch.stack(actions), torch.stack(log_probs), returns, advantages


model, env = ActorCritic(), Corridor()
optimizer = torch.optim.Adam(model.parameters(), lr=2.5e-3, eps=1e-5)
for update in range(5):
    states, actions, log_probs, returns, advantages = rollout(env, model)
    for indices in BatchSampler(SubsetRandomSampler(range(32)), 8, drop_last=True):
        policy, value = model(states[indices])
        ratio = (policy.log_prob(actions[indices]) - log_probs[indices]).exp()
        clipped = ratio.clamp(0.8, 1.2)
        gain = torch.min(ratio * advantages[indices], clipped * advantages[indices]).mean()
        value_loss = nn.functional.smooth_l1_loss(value, returns[indices])
        loss = -gain + 0.5 * value_loss - 0.01 * policy.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        print(f"update {update} loss {loss.item():.9g}")
