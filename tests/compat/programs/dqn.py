"""Deep Q-learning with a replay memory and a target network, on a walk along a line."""

import json
import math
import random
from collections import deque, namedtuple
from itertools import count

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
device = torch.device(
    "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
)
BATCH_SIZE, GAMMA, TAU, LR = 16, 0.9, 0.05, 1e-2


class Line:
    """Five places; the way to the right end is rewarded."""

    def reset(self):
        self.place = 2
        return self.observation()

    def observation(self):
        return np.array([self.place / 4, 1 - self.place / 4, 1.0], dtype=np.float32)

    def step(self, action):
        self.place += 1 if action == 1 else -1
        done = self.place in (0, 4)
        return self.observation(), float(self.place == 4), done


class ReplayMemory(object):
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super(DQN, self).__init__()
        self.layer1 = nn.Linear(n_observations, 16)
        self.layer2 = nn.Linear(16, 16)
        self.value = nn.Linear(16, 1)
        self.advantage = nn.Linear(16, n_actions)
        rng = np.random.RandomState(4)
        for p in self.parameters():
            p.data.copy_(torch.from_numpy(rng.randn(*p.shape) * 0.4))

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        value, advantage = self.value(x), self.advantage(x)
        return value + advantage - advantage.mean(-1, keepdim=True)


random.seed(0)
env = Line()
policy_net = DQN(3, 2).to(device)
target_net = DQN(3, 2).to(device)
target_net.load_state_dict(policy_net.state_dict())
for p in target_net.parameters():
    p.requires_grad = False
optimizer = optim.AdamW(policy_net.parameters(), lr=LR, amsgrad=True)
memory = ReplayMemory(100)
steps_done = 0


def select_action(state):
    global steps_done
    eps_threshold = 0.1 + 0.8 * math.exp(-1.0 * steps_done / 20)
    steps_done += 1
    if random.random() > eps_threshold:
        with torch.no_grad():
            return policy_net(state).max(1).indices.view(1, 1)
    return torch.tensor([[random.randrange(2)]], device=device, dtype=torch.long)


def optimize_model():
    if len(memory) < BATCH_SIZE:
        return None
    transitions = memory.sample(BATCH_SIZE)
    batch = Transition(*zip(*transitions))
    non_final_mask = torch.tensor(
        tuple(map(lambda s: s is not None, batch.next_state)), device=device, dtype=torch.bool
    )
    non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
    state_batch = torch.cat(batch.state)
    action_batch = torch.cat(batch.action)
    reward_batch = torch.cat(batch.reward)
    state_action_values = policy_net(state_batch).gather(1, action_batch)
    next_state_values = torch.zeros(BATCH_SIZE, device=device)
    with torch.no_grad():
        best = policy_net(non_final_next_states).argmax(1, keepdim=True)
        next_state_values[non_final_mask] = target_net(non_final_next_states).gather(1, best)[:, 0]
    expected_state_action_values = (next_state_values * GAMMA) + reward_batch
    loss = nn.SmoothL1Loss()(state_action_values, expected_state_action_values.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    return loss.item()


losses, durations = [], []
for episode in range(8):
    state = torch.tensor(env.reset(), dtype=torch.float32, device=device).unsqueeze(0)
    for t in count():
        action = select_action(state)
        observation, reward, done = env.step(action.item())
        reward = torch.tensor([reward], device=device)
        next_state = None
        if not done:
            next_state = torch.tensor(observation, dtype=torch.float32, device=device).unsqueeze(0)
        memory.push(state, action, next_state, reward)
        state = next_state
        loss = optimize_model()
        if loss is not None:
            losses.append(loss)
        target_state, policy_state = target_net.state_dict(), policy_net.state_dict()
        for key in policy_state:
            target_state[key] = policy_state[key] * TAU + target_state[key] * (1 - TAU)
        target_net.load_state_dict(target_state)
        if done or t == 20:
            durations.append(t + 1)
            break
q = target_net(torch.tensor(env.reset(), device=device)).tolist()
print(json.dumps({"losses": losses, "durations": durations, "q": q}))
