"""The picture of entropy control: GRPO and a thermostat side by side on the environment `trap`.

    runs = sides(target=1.2)      {"GRPO": Side, "thermostat": Side}
    verdict(runs)                 ("thermostat", "Thermostat. thermostat: pass@8 0.98, …")

The explorer, published pages and docs/picture.py draw these runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .config import Config
from .simulator import simulate
from .trajectory import Array
from .uncertainty import apart

SEEDS = tuple(range(8))
K = 8
"""k of pass@k."""
TARGET = 1.2
"""First target entropy, nats: the one with the highest reward."""
HIGHEST, STEP = 2.2, 0.1
"""Upper limit and step of the slider of the target, nats; its lower limit is 0."""
PLAIN, HELD, NEITHER = "GRPO", "thermostat", "no difference"
"""Names of the runs, and the answer to QUESTION if the seeds do not tell them apart."""
CHOICES = (PLAIN, HELD, NEITHER)
TITLE = "Two runs, one trap"
SETTING = (
    "Two runs start from the same policy over 16 answers. The likeliest answer pays half of the time. One answer "
    "always pays, but the policy draws it once in 400 tries. The other 14 pay 3 times in 10."
)
QUESTION = f"Which run ends with the higher pass@{K} (one of {K} tries is the answer that always pays)?"
ORDER = (0, *range(2, 16), 1)
"""Arms as bars from left to right: the likeliest one first, the one that always pays last."""
PAYS = ("pays ½", "pay 0.3", "always pays")
"""Labels of the first bar, of those in the middle and of the last one."""
TOP = 2.6
"""Upper end of the axis of entropy, nats."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Side:
    """One of the two runs; moments are before each rollout and at the end."""

    entropy: Array
    """Mean entropy over prompts, (seeds, moments), nats."""
    passed: Array
    """pass@K, (seeds, moments)."""
    reward: Array
    """Expected reward, (seeds, moments)."""
    policy: Array
    """Probability of each answer in ORDER, mean over seeds and prompts, (moments, answers)."""


def config(name: str, target: float = TARGET) -> Config:
    """Return the configuration of PLAIN, or of HELD with this target (nats)."""
    rule: dict[str, Any] = {"controller": "thermostat", "target": target} if name == HELD else {}
    return Config(env="trap", lr=2.0, passes=2, rollouts=260, **rule)


def side(name: str, target: float = TARGET) -> Side:
    """Return a run, simulated; it takes about a second."""
    run = simulate(config(name, target), SEEDS, keep_policies=True)
    assert run.policies is not None
    return Side(
        entropy=run.entropy,
        passed=run.pass_at(K),
        reward=(run.policies * run.success[:, None]).sum(-1).mean(-1),
        policy=run.policies.mean((0, 2))[:, ORDER],
    )


def sides(target: float = TARGET) -> dict[str, Side]:
    """Return both runs by name."""
    return {name: side(name, target) for name in (PLAIN, HELD)}


def verdict(runs: Mapping[str, Side]) -> tuple[str, str]:
    """Return the answer to QUESTION, one of CHOICES, and a sentence with its numbers.

    A run is the answer if its last pass@K, compared seed by seed, is `uncertainty.apart` from the other's.
    """
    passed, reward = ({name: getattr(run, what)[:, -1] for name, run in runs.items()} for what in ("passed", "reward"))
    first = max(passed, key=lambda name: float(passed[name].mean()))
    right = first if apart(passed[PLAIN], passed[HELD]) else NEITHER
    numbers = (f"{passed[name].mean():.2f} under {name} (reward {reward[name].mean():.2f})" for name in (HELD, PLAIN))
    return right, f"{right[:1].upper()}{right[1:]}: pass@{K} is {' and '.join(numbers)}."
