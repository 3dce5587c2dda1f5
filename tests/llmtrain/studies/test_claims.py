"""Each claim's verdict: it holds for measurements as claimed, and every fault turns it."""

from dataclasses import replace

import numpy as np
import pytest

from llmtrain.studies import claim_measurements, claims_page
from llmtrain.studies.claim_registry import CLAIMS, HOLDS, Measured, TokenSteps
from llmtrain.studies.claims_of_tokens import as_claimed, unexplained

ORDER = (
    "clip_lower",
    "positive_only",
    "grpo",
    "short_steps",
    "once",
    "clip_higher",
    "clip_tighter",
    "negative_only",
    "clip_free",
)
"""Runs by rising entropy, as the claims have it."""


def token_steps(seed):
    """Return tokens whose measured changes are those of the flow, but for a little noise."""
    random = np.random.default_rng(seed)
    p, sign = random.uniform(0.01, 1, 200), random.choice([-1.0, 1.0], 200)
    exact = sign * np.where(p > 0.5, -1, 1) * random.uniform(0.5, 1.5, 200)
    change = 0.1 * exact * random.uniform(0.9, 1.1, 200)
    total = random.normal(0.1, 1, 200)
    return TokenSteps(
        p=p,
        weight=sign,
        change=change,
        exact=exact,
        own=random.normal(0, 1, 200) + exact,
        total=total,
        first_order=total * random.uniform(0.95, 1.05, 200),
    )


def as_claims_say():
    """Return three seeds of measurements for which all claims are true."""
    random = np.random.default_rng(0)
    entropy, reward = {}, {}
    for level, name in enumerate(ORDER):
        steps = np.arange(60 if name == "grpo" else 30)
        falling = 1.5 - (len(ORDER) - level) * 0.1 * np.minimum(steps / 20, 3)
        entropy[name] = falling + random.normal(0, 1e-3, (3, len(steps)))
        reward[name] = 1 - 0.2 * np.exp(entropy[name]) + random.normal(0, 1e-3, (3, len(steps)))
    return Measured(entropy, reward, [token_steps(seed) for seed in range(3)])


@pytest.mark.parametrize("name", CLAIMS)
def test_holds_and_each_fault_turns_it(name):
    record = CLAIMS[name](as_claims_say(), power=True)
    assert record.verdict == HOLDS
    assert set(record.mutated.values()) & {HOLDS} == set(), record.mutated


def test_shares_by_hand():
    steps = token_steps(0)._replace(
        p=np.array([0.9, 0.9, 0.1, 0.1, 0.9, 0.5]),
        weight=np.array([1.0, 1, 1, -1, -1, 1]),
        change=np.array([-1.0, 1, 1, 1, 1, 1]),
    )
    assert as_claimed(steps) == {"exploitation": 0.5, "exploration": 1.0, "suppression": 0.0, "correction": 1.0}


def test_unexplained_by_hand():
    """Best step size 1/2 leaves (1/2, −1/2); a wrong sign leaves all, since the step size is not negative."""
    assert unexplained(np.array([1.0, 1.0]), np.array([1.0, 0.0])) == pytest.approx(0.5)
    assert unexplained(np.array([-1.0, -1.0]), np.array([1.0, 0.0])) == pytest.approx(1.0)


def test_saved_measurements_are_read_back(tmp_path):
    measured, path = as_claims_say(), tmp_path / "x" / "measured.json.gz"
    claim_measurements.save(measured, path)
    again = claim_measurements.load(path)
    np.testing.assert_allclose(again.entropy["grpo"], measured.entropy["grpo"], rtol=1e-5)
    np.testing.assert_allclose(again.tokens[2].total, measured.tokens[2].total, rtol=1e-5)


def test_runs_differ_in_what_their_names_say():
    base = claim_measurements.setting()
    runs = claim_measurements.configurations(base, set(ORDER), 3)
    assert set(runs) == set(ORDER)
    assert [config.out for config in runs["once"]] == [f"runs/claims/once/{seed}" for seed in range(3)]
    assert {name: config.updates for name, (config, *_) in runs.items() if name != "once"} == dict.fromkeys(
        set(ORDER) - {"once"}, 4
    )
    assert runs["once"][0].updates == 1
    assert runs["grpo"][1] == replace(base, out="runs/claims/grpo/1", seed=1, steps=2 * base.steps)


def test_page_has_both_verdicts():
    records = [CLAIMS[name](as_claims_say(), power=True) for name in ("clip-free", "first-order-step")]
    known = {"paper": "P", "source": "figure 3", "words": "w", "verdict": "fails as stated", "measured": "m"}
    text = claims_page.overview(records, {"clip-free": known})
    assert "| [clip-free](#clip-free) | P, figure 3: w | **fails as stated**; m | **holds**; late H" in text
    assert "| [first-order-step](#first-order-step) | Ours: One token" in text
    assert claims_page.summary(records) == "2 claims: 2 holds; 5 of 5 faults turn a verdict that holds"
