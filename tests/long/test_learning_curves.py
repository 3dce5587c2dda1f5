"""Two ways to train the same: hf and torch in one process, vLLM and DeepSpeed under Ray.

`make test-long` runs it, five minutes. Draws differ between the two, so curves agree as those of other seeds do and no
closer: over three seeds each, means must not be further apart than three standard errors of their difference.
"""

from statistics import mean, variance

import pytest

from entrostat.logs.runlog import read_metrics

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(3 * 3600),
]
STEPS, SEEDS = 60, (0, 1, 2)
WAYS = ("countdown-cpu", "countdown-ray")


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    """Of each way the mean entropy and reward of the last third of the steps, a number for each seed."""
    from llmtrain.cli import main

    folder, found = tmp_path_factory.mktemp("curves"), {}
    for way in WAYS:
        for seed in SEEDS:
            out = folder / f"{way}-{seed}"
            changes = ["--steps", str(STEPS), "--seed", str(seed), "--out", str(out), "--eval.every", "0"]
            assert main(["train", "--preset", way, *changes]) == 0
            lines = [line for line in read_metrics(out) if "reward" in line]
            assert len(lines) == STEPS
            for name in ("entropy", "reward"):
                late = mean(line[name] for line in lines[-STEPS // 3 :])
                found.setdefault((way, name), []).append(late)
    return found


@pytest.mark.parametrize("name", ["entropy", "reward"])
def test_the_curves_agree_within_the_noise_of_seeds(ends, name):
    first, second = (ends[way, name] for way in WAYS)
    error = ((variance(first) + variance(second)) / len(SEEDS)) ** 0.5
    print(f"{name}, last third of {STEPS} steps: {WAYS[0]} {first}, {WAYS[1]} {second}")
    assert abs(mean(first) - mean(second)) <= 3 * error
