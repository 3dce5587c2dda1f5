"""Learning-rate schedules: factors of the learning rate by optimizer step, for torch's LambdaLR.

    step i    0 … w − 1      (i + 1)/w                      warm-up; the first factor is above 0, so no update is lost
              w … T          m + (1 − m)·f(x)               x = (i − w)/(T − w), from 0 to 1
              above T        m + (1 − m)·f(1)

    f(x)      constant 1     linear 1 − x     cosine (1 + cos πx)/2

w: warm-up steps, T: optimizer steps of the run, m: final factor. From step w on the factors are those of the schedulers
of transformers (`get_scheduler`) and verl (`get_cosine_schedule_with_warmup`), whose warm-up starts at 0. A factor
depends on the step alone, so a resumed run continues the same schedule.
"""

import math
from collections.abc import Callable
from functools import partial

from ..settings.config import OptimConfig

Rate = Callable[[int], float]
"""Function of the optimizer step, from 0, that returns a factor of the learning rate."""

DECAYS: dict[str, Callable[[float], float]] = {
    "constant": lambda x: 1.0,
    "linear": lambda x: 1.0 - x,
    "cosine": lambda x: 0.5 + 0.5 * math.cos(math.pi * x),
}
"""f(x) of each schedule."""


def rate_of(config: OptimConfig, total: int) -> Rate:
    """Return the schedule of `config` for a run with `total` optimizer steps.

    Raises ValueError if the warm-up leaves no step to a schedule that falls; a constant one needs no `total`.
    """
    if config.lr_schedule != "constant" and config.warmup_steps >= total:
        raise ValueError(
            f"optim.lr_schedule {config.lr_schedule}: optim.warmup_steps {config.warmup_steps} must be below the "
            f"{total} optimizer steps of the run"
        )
    return partial(factor, name=config.lr_schedule, warmup=config.warmup_steps, total=total, least=config.min_lr_ratio)


def factor(step: int, *, name: str, warmup: int, total: int, least: float = 0.0) -> float:
    """Return the factor of a step. name: one of DECAYS. least: factor after `total` steps, except for constant."""
    if step < warmup:
        return (step + 1) / warmup
    x = min((step - warmup) / max(total - warmup, 1), 1.0)
    return least + (1.0 - least) * DECAYS[name](x)
