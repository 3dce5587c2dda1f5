"""toybandit: entropy control of RLVR in a tabular-softmax bandit in which every number is known.

    trajectory = toybandit.simulate(toybandit.Config(env="noisy", controller="entropic", target=0.6), seeds=range(8))
    trajectory.entropy      (runs, rollouts + 1), nats
    trajectory.reward       (runs, rollouts)

The controllers are the ones in `entrostat`, called through the same objects as in the trainer. `import toybandit` and
`import toybandit.config` do not import torch; the rest is loaded when it is first used. Importing also registers the
gymnasium environment `toybandit/SoftmaxBandit-v0` (`toybandit.gym_env`).
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .config import Config
from .environments import ENVIRONMENTS, Environment

if TYPE_CHECKING:
    from .simulator import simulate
    from .trajectory import Trajectory

_LAZY = {"simulate": "simulator", "Trajectory": "trajectory"}

__all__ = ["ENVIRONMENTS", "Config", "Environment", "Trajectory", "simulate"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)


if find_spec("gymnasium"):  # of the extra `sim`; nothing else in this package needs it
    from gymnasium import register

    register(
        id="toybandit/SoftmaxBandit-v0",
        entry_point="toybandit.gym_env:SoftmaxBandit",
        vector_entry_point="toybandit.gym_env:SoftmaxBanditVector",
        max_episode_steps=64,
    )
