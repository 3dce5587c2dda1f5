"""Balanced flows: exact ones stop the entropy at first order, as long as each token moves its own state alone."""

import numpy as np
import torch

from toybandit.claims.ensembles import STEPS, order
from toybandit.claims.opefo import one_step
from toybandit.claims.registry import Effort
from toybandit.claims.runs import entropies

EFFORT = Effort(instances=1, runs=4, states=16, rollouts=1)


def test_orders_of_one_step():
    slopes = {name: order(torch.as_tensor(change)) for name, change in one_step(EFFORT).items()}
    assert np.allclose(slopes["OPEFO, exact flow"], 2, atol=0.05)
    assert np.allclose(slopes["GRPO"], 1, atol=0.1)
    assert (slopes["OPEFO"] < 1.7).all()


def test_states_that_share_features_break_the_balance():
    args = {"estimator": "exact"}
    runs = [
        entropies(EFFORT, env="coupled", passes=1, lr=float(lr), controller="opefo", controller_args=args)
        for lr in STEPS
    ]
    change = torch.tensor([(h[:, 1] - h[:, 0]).tolist() for h in runs], dtype=torch.float64).abs()
    assert (order(change) < 1.5).all()
