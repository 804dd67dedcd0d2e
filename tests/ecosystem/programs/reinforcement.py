"""Reinforcement learning: policies of stable_baselines3 and tianshou on equal transitions."""

from harness import fill, integers, named, normal, program, state_of, uniform


def space(low, high, *shape):
    import gymnasium
    import numpy as np

    return gymnasium.spaces.Box(low, high, shape, dtype=np.float32)


@program("stable_baselines3", "actor_critic")
def actor_critic():
    from stable_baselines3.common.policies import ActorCriticPolicy

    policy = ActorCriticPolicy(space(-1, 1, 4), space(-1, 1, 2), lambda step: 1e-2)
    fill(policy)
    states, actions = normal(6, 4, name="states"), normal(6, 2, name="actions")
    for step in range(3):
        values, density, entropy = policy.evaluate_actions(states, actions)
        loss = (values.square() - density).mean() - 0.1 * entropy.mean()
        policy.optimizer.zero_grad()
        loss.backward()
        policy.optimizer.step()
        if not step:
            results = {"values": values, "density": density, "entropy": entropy}
    chosen, _ = policy.predict(states.numpy(), deterministic=True)
    return results | {"chosen": chosen} | state_of(policy)


def environment():
    """A walk on a line whose moves and rewards depend on the actions alone."""
    import gymnasium
    import numpy as np

    class Walk(gymnasium.Env):
        observation_space = space(-10, 10, 2)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, seed=None, options=None):
            super().reset(seed=seed)
            self.place, self.age = 0, 0
            return self.observation(), {}

        def step(self, action):
            self.place, self.age = self.place + 2 * int(action) - 1, self.age + 1
            return self.observation(), float(self.place), self.age == 8, False, {}

        def observation(self):
            return np.array([self.place, self.age], np.float32)

    return Walk()


@program("stable_baselines3", "dqn")
def deep_q_learning():
    """DQN on a buffer that holds one transition, so that each batch is the same."""
    import numpy as np
    from stable_baselines3 import DQN
    from stable_baselines3.common import logger

    model = DQN(
        "MlpPolicy",
        environment(),
        buffer_size=1,
        learning_starts=0,
        batch_size=4,
        device="cpu",
        policy_kwargs={"net_arch": [8]},
    )
    fill(model.policy)
    state = environment().reset()[0]
    action, reward, done = np.array([1]), np.array([0.5]), np.array([False])
    model.replay_buffer.add(state, state + 1, action, reward, done, [{}])
    model.set_logger(logger.configure(None, []))
    model.train(gradient_steps=3, batch_size=4)
    chosen, _ = model.predict(state, deterministic=True)
    return {"chosen": chosen} | state_of(model.policy)


@program("stable_baselines3", "a2c_update")
def advantage_update():
    """One update of A2C from a rollout of equal actions."""
    import numpy as np
    import torch
    from stable_baselines3 import A2C
    from stable_baselines3.common import logger

    model = A2C(
        "MlpPolicy", environment(), n_steps=6, device="cpu", policy_kwargs={"net_arch": [8]}
    )
    fill(model.policy)
    model.set_logger(logger.configure(None, []))
    buffer, place = model.rollout_buffer, model.env.reset()
    for action in integers(2, 6, name="actions").numpy():
        tensor = torch.as_tensor(place)
        value, density, _ = model.policy.evaluate_actions(tensor, torch.tensor([int(action)]))
        place_after, reward, done, _ = model.env.step(np.array([action]))
        buffer.add(place, np.array([[action]]), reward, done, value.detach(), density.detach())
        place = place_after
    buffer.compute_returns_and_advantage(value.detach(), done)
    model.train()
    return {"returns": buffer.returns, "advantages": buffer.advantages} | state_of(model.policy)


@program("tianshou", "networks")
def networks():
    import torch
    from tianshou.utils.net.common import MLP

    model = fill(MLP(input_dim=4, output_dim=2, hidden_sizes=[8]))
    outputs = model(normal(5, 4, name="states"))
    loss = torch.nn.functional.mse_loss(outputs, uniform(5, 2, name="target"))
    loss.backward()
    gradient = {f"gradient.{name}": p.grad for name, p in model.named_parameters()}
    return {"output": outputs, "loss": loss} | gradient


@program("tianshou", "batch_and_returns")
def batch_and_returns():
    import numpy as np
    from tianshou.data import Batch, ReplayBuffer, to_numpy, to_torch

    buffer = ReplayBuffer(size=8)
    states = normal(7, 3, name="states").numpy()
    for index in range(6):
        buffer.add(
            Batch(
                obs=states[index],
                act=index % 2,
                rew=float(index),
                terminated=index == 5,
                truncated=False,
                obs_next=states[index + 1],
                info={},
            )
        )
    batch, indices = buffer.sample(0)
    tensors = to_torch(batch)
    results = {"rewards": tensors.rew, "states": tensors.obs * 2, "indices": np.array(indices)}
    return results | named(to_numpy({"next": tensors.obs_next}), "numpy")
