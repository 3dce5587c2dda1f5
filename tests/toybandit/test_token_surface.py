"""The entropy change of a token over the plane of p and H."""

from math import log

import pytest
import torch

from entrostat import policy_stats
from toybandit.token_surface import FORMULAS, boundary, exact_flow, geometric_tail, surface


@pytest.mark.parametrize("wanted", [0.0, 0.3, 1.5, log(15)])
def test_the_tail_has_the_entropy_asked_for(wanted):
    stats = policy_stats(geometric_tail(torch.tensor(wanted, dtype=torch.float64), 15))
    assert float(stats.entropy) == pytest.approx(wanted, abs=1e-9)


def test_formulas_by_hand():
    """At p = .5, H = 1: lp + H = .3069; own logit −.5²·.3069, Ω −.5·.3069, OPEFO −.5²·.3069, Cov −.3069."""
    x = 1 - log(2)
    wanted = {"own logit": -0.25 * x, "Ω": -0.5 * x, "OPEFO": -0.25 * x, "Cov": -x}
    for name, value in wanted.items():
        grid = surface(name, 16, (1, 1))  # one cell, centre p = .5, H = log(16)/2
        h = log(16) / 2
        assert float(grid.flow) == pytest.approx(value * (h - log(2)) / x, rel=1e-9)


def test_the_sign_of_the_paper_turns_at_its_boundary_and_the_exact_one_later():
    grids = {name: surface(name, 16, (40, 30)) for name in FORMULAS}
    possible = ~grids["exact"].flow.isnan()
    assert 0.4 < float(possible.double().mean()) < 0.9
    likely = grids["exact"].p > (-grids["exact"].entropy).exp()
    for name in FORMULAS[1:]:
        assert bool((~grids[name].flow.isnan() == possible).all())
        assert bool(((grids[name].flow < 0) == likely)[possible].all())
    wrong = possible & ((grids["exact"].flow < 0) != likely)
    assert 0.01 < float(wrong.sum() / possible.sum()) < 0.2
    assert bool(likely[wrong].all())


def test_the_boundary_is_a_root_above_that_of_the_paper():
    entropy = torch.tensor([0.9, 1.5, 2.2], dtype=torch.float64)
    star = boundary(entropy, 16)
    assert bool((star > (-entropy).exp()).all())
    assert float(exact_flow(star, entropy, 16).abs().max()) < 1e-4
    assert bool((exact_flow(star - 0.01, entropy, 16) > 0).all())
    assert bool((exact_flow(star + 0.01, entropy, 16) < 0).all())


def test_no_boundary_where_no_state_is():
    """Below log 2 a state with p between e^(−H) and the larger root of the binary entropy does not exist."""
    assert bool(boundary(torch.tensor([0.3], dtype=torch.float64), 16).isnan().all())


def test_an_unknown_formula():
    with pytest.raises(ValueError, match="unknown formula 'steer'; choose from exact, own logit"):
        surface("steer", 16, (2, 2))
