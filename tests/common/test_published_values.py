"""Defaults of rules, by hand from their papers; docs/conformity.md compares what they compute."""

from math import inf

import pytest

from entrostat import make

PUBLISHED = {
    # Entropy Mechanism, equations 8 to 12 and section 4.3: k = 2e-4 and covariances of 1 to 5; no clip of the ratio
    "clip_cov": {"k": 2e-4, "omega_low": 1.0, "omega_high": 5.0, "exclude_clipped": True},
    "kl_cov": {"k": 2e-3, "beta": 1.0},
    # Revisiting Entropy, equation 5 and section 5
    "positive_reweight": {
        "variant": "entropy_guided",
        "target": 0.2,
        "delta": 0.01,
        "lambda_init": 1.0,
        "lambda_max": 2.0,
    },
    # OPEFO, equations 6 to 9 and table 2
    "opefo": {"variant": "both", "estimator": "paper", "lambda_static": 0.001},
    # EntroPIC, sections 4.2, 4.3 and 5.1
    "entropic": {"target": 0.1, "kp": 1.0, "ki": 0.01, "kd": 0.0, "tau": 0.95, "alpha_max": 1.0, "anti_windup": True},
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_defaults_are_published_values(name):
    (part,) = make(name).parts
    assert {key: getattr(part, key) for key in PUBLISHED[name]} == PUBLISHED[name]


def test_the_covariance_rules_clip_no_ratio():
    clip_cov = make("clip_cov").surrogate
    assert (clip_cov.eps_low, clip_cov.eps_high, clip_cov.dual_clip) == (1.0, 1.0, inf)


def test_released_values_of_steer():
    (part,) = make("steer", "released").parts
    assert (part.lambda_min, part.mask_clipped, part.rollout_entropy, part.omega_floor) == (0.8, False, True, 0.02)
