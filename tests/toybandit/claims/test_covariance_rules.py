"""Where KL-Cov is GRPO, and where it stops being so."""

import numpy as np

from toybandit.claims.covariance_rules import PENALISED
from toybandit.claims.registry import Effort
from toybandit.claims.runs import entropies

EFFORT = Effort(instances=1, runs=2, states=16, rollouts=5)


def difference(passes: int) -> float:
    args = {"k": PENALISED, "beta": 10.0}
    kl = entropies(EFFORT, env="noisy", passes=passes, controller="kl_cov", controller_args=args)
    free = entropies(EFFORT, env="noisy", passes=passes, controller="clip_free")
    return float(np.abs(kl - free).max())


def test_penalty_needs_a_second_pass():
    assert difference(1) == 0
    assert difference(2) > 1e-3
