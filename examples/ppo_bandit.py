"""PPO of stable-baselines3 on the simulator's bandits: expected reward before and after training.

pip install stable-baselines3
python examples/ppo_bandit.py
"""

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

STATES = 8
SIZE = {"n_steps": 64, "batch_size": 128, "gamma": 0.0}  # the next state does not depend on the action


def learn(env: str, seed: int, steps: int = 16_384) -> tuple[float, float]:
    """Return the expected reward of the first and the last policy, which the simulator knows."""
    numbers = {"env": env, "states": STATES, "seed": 3}
    envs = make_vec_env("toybandit:toybandit/SoftmaxBandit-v0", n_envs=8, seed=seed, env_kwargs=numbers)
    success = torch.tensor(envs.envs[0].unwrapped.success)
    model = PPO("MlpPolicy", envs, seed=seed, device="cpu", **SIZE)

    def expected() -> float:
        with torch.no_grad():
            p = model.policy.get_distribution(torch.arange(STATES)).distribution.probs
        return float((p * success).sum(1).mean())

    before = expected()
    model.learn(steps)
    return before, expected()


if __name__ == "__main__":
    for env in ("det", "noisy"):
        for seed in range(3):
            before, after = learn(env, seed)
            print(f"{env}, seed {seed}: expected reward {before:.3f} → {after:.3f}")
