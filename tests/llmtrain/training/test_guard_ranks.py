"""Guards of two ranks under DeepSpeed: both decide the same, and an update that is left out leaves nothing behind."""

from dataclasses import replace
from pathlib import Path

import guard_ranks
import pytest
import torch
from tests.ranks import group, run_ranks

from entrostat.logs.runlog import read_metrics
from llmtrain.policy.checkpoint import latest, load_state

pytest.importorskip("deepspeed")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
ENGINES = ("zero0", "zero1", "zero2", "zero3", "bf16-1", "offload2", "offload3")


@pytest.fixture(scope="module")
def out(small, tmp_path_factory) -> Path:
    """Folder in which two ranks have written what they found."""
    out, never = tmp_path_factory.mktemp("guards"), replace(small.eval, every=0)
    rollout = replace(small.rollout, prompts=4, max_new_tokens=6)
    config = replace(small, steps=4, save_every=2, rollout=rollout, eval=never, threads=1, controller="entropy_bonus")
    run_ranks(group(2), guard_ranks.main, out, config)
    return out


@pytest.fixture(scope="module")
def found(out) -> list[dict]:
    return [torch.load(out / f"found-{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> list[dict]:
    """Weights of both ranks after each of three updates, of which none is left out."""
    out = tmp_path_factory.mktemp("plain")
    run_ranks(group(2), guard_ranks.undisturbed, out)
    return [torch.load(out / f"plain-{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.mark.long
@pytest.mark.parametrize("name", ENGINES)
def test_an_update_that_is_left_out_leaves_nothing_behind(found, plain, name):
    """By a limit, by a NaN loss and by an infinite gradient on one rank; then weights are those of a run without."""
    for rank, expected in zip(found, plain, strict=True):
        limit, one, nan, two, inf, three = rank[name]["weights"]
        assert not torch.equal(limit, one)
        assert torch.equal(nan, one)
        assert torch.equal(inf, two)
        assert [torch.equal(a, b) for a, b in zip((one, two, three), expected[name], strict=True)] == [True] * 3
        assert bool(three.isfinite().all())


@pytest.mark.parametrize("name", ENGINES)
def test_all_ranks_decide_the_same(found, name):
    counted = found[0][name]["counted"]
    assert counted == found[1][name]["counted"]
    of_limit, of_fault = "guard/grad_norm", "guard/non_finite"
    assert [(line[of_limit], line.get(of_fault, 0), line.get("guard/skipped", 0)) for line in counted] == [
        (1, 0, 1),
        (0, 0, 0),
        (0, 1, 1),
        (0, 0, 0),
        (0, 1, 1),
        (0, 0, 0),
    ]


@pytest.mark.parametrize("stage", ["zero1", "zero3"])
def test_ranks_roll_back_together(out, stage):
    """Because of a loss that is NaN on the second rank."""
    lines = read_metrics(out / stage)
    assert [line["step"] for line in lines] == [0, 1, 2, 3]
    assert [line["guard/roll_backs"] for line in lines] == [0, 0, 1, 1]
    assert lines[3]["lr"] == lines[0]["lr"] / 2
    assert load_state(latest(out / stage))["roll_backs"] == 1
