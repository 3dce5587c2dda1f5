"""The simulator's bandits as gymnasium environments, `toybandit/SoftmaxBandit-v0`.

    env = gymnasium.make("toybandit:toybandit/SoftmaxBandit-v0", env="det", states=8, seed=3)
    envs = gymnasium.make_vec("toybandit:toybandit/SoftmaxBandit-v0", num_envs=1024, env="det", states=8, seed=3)

gymnasium imports the module before the colon, which registers the environment. It is needed once, and not at all after
`import toybandit`.

A contextual bandit of S states and K arms: the observation is the state, uniform among S whatever the action was; the
action is an arm; the reward is 1 with the success probability of the arm in the observed state, else 0. An episode
never terminates; it is truncated after `max_episode_steps`, an argument of `make` and `make_vec`.

`seed` selects the bandit, the same one that `simulate` learns in the run with this seed; all copies of a vector
environment share it. `reset(seed=...)` seeds states and rewards; copy i has `seed + i`. `info` holds the `success`
probabilities of the arms in the observed state, and their initial `logits`. `label_noise=e` flips a reward with
probability e; `success` is without this noise.

With `render_mode="rgb_array"`, `render` draws the last action with its reward, and the observed state.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from operator import index
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Discrete
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from entrostat.about.colours import PALETTE

from .config import Config
from .environments import Environment
from .trajectory import Array

Indices = NDArray[np.int64]
Infos = dict[str, Any]

BLOCK = 264
"""Steps whose random numbers are drawn at once, one uniform number u each: the whole part of S·u is the next state, and
the fraction is the luck, which gives the reward if it is below the success probability. An odd number of cache lines,
so that the columns of a block spread over the cache."""
RENDER_MODES = ["rgb_array"]


class SoftmaxBandit(gymnasium.Env[Any, Any]):
    """Environment of one bandit.

    env: name of an environment, or a YAML file; numbers: fields of `Environment` that differ from it.
    render_mode: "rgb_array", or None to draw nothing.
    Raises ValueError, one line, on an invalid argument and on an action that is not an arm.
    """

    metadata: dict[str, Any] = {"render_modes": RENDER_MODES, "render_fps": 4}  # noqa: RUF012

    def __init__(self, *, env: str = "noisy", seed: int = 0, render_mode: str | None = None, **numbers: Any) -> None:
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ValueError(f"unknown render mode {render_mode!r}; choose from {', '.join(RENDER_MODES)}, or None")
        self.render_mode = render_mode
        self.logits, self.success, rewarded = draw_tables(env, seed, numbers)
        self.policy: Array = _softmax(self.logits)
        """Probabilities of the arms that `render` draws, (S, K): the initial policy's; set them to a learner's."""
        states, arms = self.success.shape
        self.observation_space, self.action_space = Discrete(states), Discrete(arms)
        self._states, self._arms = states, arms
        self._probability = rewarded.tolist()
        self._rows = list(zip(self.success, self.logits, strict=True))
        self._ahead: list[float] = []
        self._state: int | None = None
        self._last: tuple[int, int, bool] | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, Infos]:
        """Begin an episode; without a seed, continue the random numbers of the last one. There are no options."""
        _require_no_options(options)
        super().reset(seed=seed)
        if seed is not None:
            self._ahead = []
        _, self._state = self._draw()
        self._last = None
        return self._state, self._info(self._state)

    def step(self, action: int) -> tuple[int, float, bool, bool, Infos]:
        """Pull an arm: return next state, reward, terminated, truncated, info. Gymnasium's TimeLimit truncates."""
        if self._state is None:
            raise ResetNeeded("call reset before step")
        arm = _as_integer("action", action)
        if not 0 <= arm < self._arms:
            raise ValueError(f"action must be an arm, 0 to {self._arms - 1}, not {arm}")
        state, probability = self._state, self._probability[self._state][arm]
        luck, self._state = self._draw()
        rewarded = luck < probability
        self._last = state, arm, rewarded
        return self._state, float(rewarded), False, False, self._info(self._state)

    def render(self) -> NDArray[np.uint8] | None:
        """Return a picture (400, 640, 3): above the state of the last action, which is marked; below the observed one.

        Each arm has its probability of success and beside it the policy's. Returns None without a render mode.
        """
        if self.render_mode is None:
            return None
        if self._state is None:
            raise ResetNeeded("call reset before render")
        return _picture(self.success, self.policy, self._state, self._last)

    def _draw(self) -> tuple[float, int]:
        """Return the uniform number that decides a step's reward, and the next state."""
        if not self._ahead:
            self._ahead = self.np_random.random(BLOCK)[::-1].tolist()
        scaled = self._states * self._ahead.pop()
        state = int(scaled)
        return scaled - state, state

    def _info(self, state: int) -> Infos:
        success, logits = self._rows[state]
        return {"success": success.copy(), "logits": logits.copy()}


class SoftmaxBanditVector(VectorEnv[Indices, Indices, NDArray[Any]]):
    """Copies of one bandit. Copy i has the same states and rewards as `SoftmaxBandit` with its seed.

    max_episode_steps: steps after which all copies are truncated, and the next step resets them; None for no limit.
    render_mode: None; copies are not drawn.
    The other arguments, and the errors, are those of `SoftmaxBandit`.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int = 1,
        *,
        max_episode_steps: int | None = None,
        env: str = "noisy",
        seed: int = 0,
        render_mode: None = None,
        **numbers: Any,
    ) -> None:
        if render_mode is not None:
            raise ValueError(
                f"render_mode must be None, not {render_mode!r}: copies are not drawn; draw a SoftmaxBandit"
            )
        for name, value in (("num_envs", num_envs), ("max_episode_steps", max_episode_steps)):
            if value is not None and _as_integer(name, value) < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        self.num_envs, self.max_episode_steps = num_envs, max_episode_steps
        self.logits, self.success, self._probability = draw_tables(env, seed, numbers)
        self._states, self._arms = self.success.shape
        self.single_observation_space, self.single_action_space = Discrete(self._states), Discrete(self._arms)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._generators: list[np.random.Generator] = []
        self._ahead = np.empty((num_envs, BLOCK))
        self._used = BLOCK
        self._state: Indices | None = None
        self._elapsed = 0

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Indices, Infos]:
        """Begin an episode in all copies. seed: first copy's, or one per copy; None continues the random numbers."""
        _require_no_options(options)
        if seed is None and not self._generators:
            seed = int(self.np_random.integers(2**31))
        if seed is not None:
            self._seed([seed + i for i in range(self.num_envs)] if isinstance(seed, int) else seed)
        self._elapsed = 0
        _, self._state = self._draw()
        return self._state.copy(), self._info(self._state)

    def step(self, actions: Indices) -> tuple[Indices, Array, NDArray[np.bool_], NDArray[np.bool_], Infos]:
        """Pull an arm in each copy, int (num_envs,). The step after a truncation resets the copies, with reward 0."""
        if self._state is None:
            raise ResetNeeded("call reset before step")
        over = self._elapsed == self.max_episode_steps
        probability = self._probability[self._state, self._as_arms(actions)]
        luck, self._state = self._draw()
        reward = np.zeros(self.num_envs) if over else (luck < probability).astype(np.float64)
        self._elapsed = 0 if over else self._elapsed + 1
        truncated = np.full(self.num_envs, self._elapsed == self.max_episode_steps)
        return self._state.copy(), reward, np.zeros_like(truncated), truncated, self._info(self._state)

    def _seed(self, seeds: Sequence[int]) -> None:
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed must be one number or {self.num_envs}, one for each copy, not {len(seeds)}")
        super().reset(seed=seeds[0])
        self._generators = [np_random(seed)[0] for seed in seeds]
        self._used = BLOCK

    def _as_arms(self, actions: Indices) -> Indices:
        arms = np.asarray(actions)
        if arms.shape != (self.num_envs,) or arms.dtype.kind not in "iu":
            raise ValueError(f"actions must be {self.num_envs} integers, not {arms.dtype} of shape {arms.shape}")
        arms = arms.astype(np.int64, copy=False)
        if int(arms.view(np.uint64).max()) >= self._arms:  # as uint64, negative numbers are the largest
            raise ValueError(f"actions must be arms, 0 to {self._arms - 1}, not {arms.min()} to {arms.max()}")
        return arms

    def _draw(self) -> tuple[Array, Indices]:
        """Return the uniform numbers that decide each copy's reward of a step, and the next states."""
        if self._used == BLOCK:
            for generator, row in zip(self._generators, self._ahead, strict=True):
                generator.random(out=row)
            self._used = 0
        scaled = self._states * self._ahead[:, self._used]
        self._used += 1
        state = scaled.astype(np.int64)
        return scaled - state, state

    def _info(self, state: Indices) -> Infos:
        """Return the info of all copies, with a mask for each key of the copies that have it, as gymnasium requires."""
        known = {"success": self.success.take(state, axis=0), "logits": self.logits.take(state, axis=0)}
        return known | {f"_{name}": np.ones(self.num_envs, dtype=np.bool_) for name in known}


def draw_tables(env: str, seed: int, numbers: Mapping[str, Any]) -> tuple[Array, Array, Array]:
    """Return initial logits and success probabilities (S, K) of the bandit that `simulate` learns with this seed.

    The third table holds the probabilities of a reward of 1: those of success with label noise.
    """
    import torch

    from .problem import draw_problem, with_label_noise

    known = [field.name for field in fields(Environment)]
    for name, value in {**numbers, "seed": seed}.items():
        if name not in (*known, "seed"):
            raise ValueError(f"unknown argument {name!r}; choose from env, seed, {', '.join(known)}")
        if name in ("seed", "states", "arms", "right_arms"):
            _as_integer(name, value)
    if not 0 <= seed < 2**63:
        raise ValueError(f"seed must be between 0 and 2^63 - 1, not {seed}")
    environment = Config(env=env, **numbers).environment()
    if environment.length != 1:
        raise ValueError(f"length must be 1, not {environment.length}: an action here is a whole response")
    problem = draw_problem(environment, torch.tensor([seed]), torch.float64)
    rewarded = with_label_noise(problem.success, environment.label_noise)
    logits, success, probability = (x[0].numpy() for x in (*problem, rewarded))
    for table in (logits, success, probability):
        table.setflags(write=False)
    return logits, success, probability


def _softmax(logits: Array) -> Array:
    p: Array = np.exp(logits - logits.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True)


def _picture(success: Array, policy: Array, state: int, last: tuple[int, int, bool] | None) -> NDArray[np.uint8]:
    """Return the last action above the observed state, as RGB (400, 640, 3)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4), dpi=100, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True)
    arm = np.arange(success.shape[1])
    for axes, shown in ((above, last and last[0]), (below, state)):
        axes.set(ylim=(0, 1.2), yticks=(0, 0.5, 1), ylabel="probability")
        if shown is None:
            axes.set_title("no action yet", fontsize=9)
            continue
        axes.set_title(f"observed: state {shown} of {len(success)}", fontsize=9)
        axes.bar(arm - 0.2, success[shown], 0.4, color=PALETTE[2], label="success")
        axes.bar(arm + 0.2, policy[shown], 0.4, color=PALETTE[0], label="policy")
    if last is not None:
        shown, pulled, rewarded = last
        above.set_title(f"last action: arm {pulled} in state {shown}, reward {int(rewarded)}", fontsize=9)
        above.axvspan(pulled - 0.5, pulled + 0.5, color=PALETTE[2] if rewarded else PALETTE[1], alpha=0.3, zorder=0)
    below.set_xlabel("arm")
    below.legend(frameon=False, ncols=2, fontsize=8, loc="upper right")
    canvas.draw()
    return np.ascontiguousarray(np.asarray(canvas.buffer_rgba())[..., :3])


def _require_no_options(options: dict[str, Any] | None) -> None:
    if options:
        raise ValueError(f"reset takes no options, got {', '.join(map(str, options))}: give settings to gymnasium.make")


def _as_integer(name: str, value: Any) -> int:
    try:
        return index(value)
    except TypeError:
        raise ValueError(f"{name} must be an integer, not {value!r}") from None
