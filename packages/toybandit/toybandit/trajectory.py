"""Trajectory: the result of a simulation."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .config import Config

Array = NDArray[np.float64]


def divergence(rollouts: int) -> str:
    """Return the error message of a run that diverged after this many rollouts."""
    return f"logits are not finite after rollout {rollouts}: lower lr"


def require_k(k: int) -> None:
    """Raise ValueError unless k is a number of draws."""
    if not isinstance(k, int) or k < 1:
        raise ValueError(f"k of pass@k must be a whole number of at least 1; got {k}")


def last_third(values: Array) -> Array:
    """Return the last third of the last axis, at least one number."""
    return values[..., -(values.shape[-1] // 3 or 1) :]


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldOut:
    """The policy at temperature 1 on prompts that training never sees, at n moments of every run."""

    rollouts: NDArray[np.int64]
    """Rollouts before each evaluation, (n,)."""
    entropy: Array
    """Mean entropy of its responses' tokens, (runs, n), nats."""
    solved: Array
    """Probability P that a response to a prompt is right, whatever it is paid, (runs, n, prompts): of all its arms
    (`joint`), or on average over them."""

    def pass_at(self, k: int) -> Array:
        """Return pass@k, (runs, n): mean over prompts of 1 − (1 − P)^k. It is exact: nothing is drawn.

        Raises ValueError unless k is a whole number of at least 1.
        """
        require_k(k)
        found: Array = (1 - (1 - self.solved.clip(0, 1)) ** k).mean(-1)
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class Trajectory:
    """Every run of a simulation, as float64 arrays. If prompts take turns, rows are those of the next in turn."""

    config: Config
    seeds: tuple[int, ...]
    entropy: Array
    """Mean entropy over states before each rollout and at the end, (runs, rollouts + 1), nats."""
    reward: Array
    """Expected reward Σ_a p_a·q_a of the policy, mean over states, before each rollout's update: (runs, rollouts).
    Not the mean of the sampled rewards: the simulator knows the reward probabilities. It is free of label noise; with
    noise, `metrics["reward_seen"]` is the expected reward that training sees."""
    probabilities: Array
    """Final policy at temperature 1, (runs, rows, K): a row for each state."""
    logits: Array
    """Final logits, (runs, rows, K)."""
    weights: Array
    """Final weights: the logits, or those of features, (runs, W, K)."""
    success: Array
    """Probability that an arm is rewarded, without label noise, (runs, rows, K)."""
    metrics: dict[str, Array] = field(default_factory=dict)
    """Numbers of the controller's state and plan at each rollout, (runs, rollouts) each; those of the plan are means
    over the passes."""
    predicted: Array | None = None
    """First-order prediction of each rollout's change of mean entropy: the flow of each token in its own state, summed
    over tokens and passes, (runs, rollouts), nats. None without `predict`, and where a step is not on the logits."""
    held_out: HeldOut | None = None
    """Evaluations on held-out prompts. None without such prompts."""
    policies: Array | None = None
    """Policy before each rollout and at the end, (runs, rollouts + 1, rows, K). None without `keep_policies`."""

    @property
    def sampled(self) -> Array:
        """Final policy at the last sampling temperature, (runs, rows, K): `probabilities`, if that is 1."""
        heat = self.metrics.get("temperature")
        if heat is None:
            return self.probabilities
        z = self.logits / heat[:, -1, None, None]
        p = np.exp(z - z.max(-1, keepdims=True))
        sampled: Array = p / p.sum(-1, keepdims=True)
        return sampled

    @property
    def runs(self) -> int:
        return self.entropy.shape[0]

    @property
    def entropy_held(self) -> Array:
        """Mean entropy over the last third of the rollouts, (runs,), nats."""
        return last_third(self.entropy[:, 1:]).mean(1)

    @property
    def reward_held(self) -> Array:
        """Mean expected reward over the last third of the rollouts, (runs,)."""
        return last_third(self.reward).mean(1)

    @property
    def target(self) -> Array | None:
        """Target entropy at each rollout, (runs, rollouts), nats; None if the configuration sets none."""
        moving = next((values for name, values in self.metrics.items() if name.endswith("/target")), None)
        if moving is not None or not isinstance(self.config.target, float | int):
            return moving
        return np.full(self.reward.shape, float(self.config.target))

    def pass_at(self, k: int) -> Array:
        """Return pass@k before each rollout and at the end, (runs, rollouts + 1): mean over states of 1 − (1 − P)^k.

        P is the policy's probability of the arms that pay most in the state: a draw succeeds if it is one of them, even
        if it then happens to earn no reward. It is exact: nothing is drawn.
        Raises ValueError unless k is a whole number of at least 1, without policies (`keep_policies`), for responses of
        several tokens, and for prompts that change: `held_out` has those of both.
        """
        require_k(k)
        if self.policies is None:
            raise ValueError("pass@k needs the policies of a run: simulate with keep_policies=True")
        environment = self.config.environment()
        if environment.length > 1:
            raise ValueError("pass@k is defined for responses of one token: length must be 1")
        if environment.prompts > environment.states:
            raise ValueError("pass@k is of prompts that stay the same: leave pool out, or take held_out.pass_at")
        best = self.success == self.success.max(-1, keepdims=True)
        p = (self.policies * best[:, None]).sum(-1).clip(0, 1)
        found: Array = (1 - (1 - p) ** k).mean(-1)
        return found

    @property
    def diverged(self) -> dict[int, str]:
        """Error message of each run whose logits or entropy became non-finite, keyed by the run's index."""
        broken = ~np.isfinite(self.entropy)
        return {int(run): divergence(int(broken[run].argmax())) for run in np.flatnonzero(broken.any(1))}

    def save(self, path: Path) -> None:
        """Write all arrays to a compressed .npz file; metrics keep their names."""
        names = ("entropy", "reward", "probabilities", "logits", "weights", "success")
        arrays = {name: getattr(self, name) for name in names}
        if self.held_out is not None:
            arrays |= {f"held_out/{name}": values for name, values in vars(self.held_out).items()}
        if self.predicted is not None:
            arrays["predicted"] = self.predicted
        np.savez_compressed(path, seeds=np.array(self.seeds), **arrays, **self.metrics)  # type: ignore[arg-type]
