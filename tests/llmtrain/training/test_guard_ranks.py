"""Guards of two ranks under DeepSpeed: both decide the same, and an update that is left out leaves nothing behind."""

from dataclasses import replace
from functools import cache

import guard_ranks
import pytest
import torch
from tests.ranks import group, run_ranks

from entrostat.logs.runlog import read_metrics
from llmtrain.policy.checkpoint import latest, load_state

pytest.importorskip("deepspeed")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
FIRST, FURTHER = ("zero1", "zero3", "bf16-1"), ("zero0", "zero2", "offload2", "offload3")
ENGINES = (*FIRST, *(pytest.param(name, marks=pytest.mark.long) for name in FURTHER))


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Function that returns what two ranks found under an engine; they run when first asked for."""

    @cache
    def of(engines: tuple[str, ...]) -> list[dict]:
        out = tmp_path_factory.mktemp("guards")
        run_ranks(group(2), guard_ranks.main, out, *engines)
        return [torch.load(out / f"found-{rank}.pt", weights_only=True) for rank in range(2)]

    return lambda name: [rank[name] for rank in of(FIRST if name in FIRST else FURTHER)]


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
    for rank, expected in zip(found(name), plain, strict=True):
        limit, one, nan, two, inf, three = rank["weights"]
        assert not torch.equal(limit, one)
        assert torch.equal(nan, one)
        assert torch.equal(inf, two)
        assert [torch.equal(a, b) for a, b in zip((one, two, three), expected[name], strict=True)] == [True] * 3
        assert bool(three.isfinite().all())


@pytest.mark.parametrize("name", ENGINES)
def test_all_ranks_decide_the_same(found, name):
    counted, others = (rank["counted"] for rank in found(name))
    assert counted == others
    of_limit, of_fault = "guard/grad_norm", "guard/non_finite"
    assert [(line[of_limit], line.get(of_fault, 0), line.get("guard/skipped", 0)) for line in counted] == [
        (1, 0, 1),
        (0, 0, 0),
        (0, 1, 1),
        (0, 0, 0),
        (0, 1, 1),
        (0, 0, 0),
    ]


@pytest.mark.parametrize("stage", ["zero1", pytest.param("zero3", marks=pytest.mark.long)])
def test_ranks_roll_back_together(small, tmp_path, stage):
    """Because of a loss that is NaN on the second rank."""
    rollout, never = replace(small.rollout, prompts=4, max_new_tokens=6), replace(small.eval, every=0)
    config = replace(small, steps=4, save_every=2, rollout=rollout, eval=never, threads=1, controller="entropy_bonus")
    run_ranks(group(2), guard_ranks.roll_back, tmp_path, config, stage)
    lines = read_metrics(tmp_path / stage)
    assert [line["step"] for line in lines] == [0, 1, 2, 3]
    assert [line["guard/roll_backs"] for line in lines] == [0, 0, 1, 1]
    assert lines[3]["lr"] == lines[0]["lr"] / 2
    assert load_state(latest(tmp_path / stage))["roll_backs"] == 1
