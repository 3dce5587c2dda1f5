"""Kernels of a response's importance ratio, computed by hand."""

import math

import pytest
import torch

from entrostat import Tokens, make
from entrostat.surrogates.sequence import VESPO
from toybandit.claims.staleness import KERNELS, without_decay

RATIOS = (1.5, 2.0)
"""Ratios of the two tokens of a response: w = 3."""


def weight(kernel: str) -> float:
    """Return φ of a response with A = 1: minus the derivative of the loss, times the two tokens."""
    old = torch.tensor([-1.0, -2.0], dtype=torch.float64)
    logp = old + torch.tensor(RATIOS, dtype=torch.float64).log()
    tokens = Tokens(logp=logp, old_logp=old, advantage=torch.ones(2, dtype=torch.float64), seq_id=torch.zeros(2).long())
    slope, _ = make("vespo", **KERNELS[kernel]).plan(tokens).coefficients(logp)
    return -2 * float(slope[0])


def test_kernels():
    assert weight("φ = w") == pytest.approx(3.0)
    assert weight("VESPO") == pytest.approx(math.exp(3) * 3**2 * math.exp(-3 * 3))


def test_without_its_decay_a_kernel_is_a_power(monkeypatch):
    monkeypatch.setattr(VESPO, "factor", without_decay(VESPO.factor))
    assert weight("VESPO") == pytest.approx(3.0**2)
