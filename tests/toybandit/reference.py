"""GRPO with the PPO clip in a bandit, written out in loops over runs, states and samples. Slow and plain."""

import numpy as np
import torch

from entrostat.numbers.draws import salt, uniform
from toybandit.environments import Environment
from toybandit.problem import draw_problem


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max())
    return e / e.sum()


def draw(seed: int, purpose: str, step: int, state: int, sample: int) -> float:
    return float(uniform(torch.tensor(seed), salt(purpose), step, state, sample))


def simulate_state(
    environment: Environment, z: np.ndarray, q: np.ndarray, seed: int, state: int, clip: float
) -> list[float]:
    """Entropy of one state before each rollout and at the end."""
    entropies = []
    for step in range(environment.rollouts):
        old = softmax(z)
        entropies.append(float(-(old * np.log(old)).sum()))
        arms, rewards = [], []
        for sample in range(environment.group or 0):
            arm = int(np.searchsorted(np.cumsum(old), draw(seed, "arm", step, state, sample)))
            arms.append(arm)
            rewards.append(float(draw(seed, "reward", step, state, sample) < q[arm]))
        advantages = (np.array(rewards) - np.mean(rewards)) / (np.std(rewards, ddof=1) + 1e-6)
        for _ in range(environment.passes):
            p = softmax(z)
            gradient = np.zeros_like(z)
            for arm, advantage in zip(arms, advantages, strict=True):
                ratio = p[arm] / old[arm]
                stopped = ratio > 1 + clip if advantage > 0 else ratio < 1 - clip
                if not stopped:
                    gradient += advantage * ratio * (np.eye(len(z))[arm] - p) / len(arms)
            z = z + environment.lr * gradient
    p = softmax(z)
    return [*entropies, float(-(p * np.log(p)).sum())]


def entropy_of_runs(environment: Environment, seeds: list[int], clip: float = 0.2) -> np.ndarray:
    """Mean entropy over states, (runs, rollouts + 1)."""
    logits, success = (x.numpy() for x in draw_problem(environment, torch.tensor(seeds), torch.float64))
    return np.array(
        [
            np.mean(
                [
                    simulate_state(environment, logits[run, state], success[run, state], seed, state, clip)
                    for state in range(environment.states)
                ],
                axis=0,
            )
            for run, seed in enumerate(seeds)
        ]
    )
