"""Exact resume: ten steps are five and five in a new process, to the bit, whatever holds a state.

    case                        engine                  layout   LoRA  PRIME  filtered  state besides
    a controller's name         torch                   padded                          the controller's own
    resets                      torch                   padded                          reference, moments from then
    packed                      torch                   packed   yes   yes    yes       group size, pass rates, rate
    shared                      torch, bf16 products    shared         yes    yes       cosine rate, reference
    asynchronous                torch                   padded                yes       two rollouts in flight
    partial                     torch                   packed         yes    yes       responses that go on
    ahead                       torch                   padded                yes       the same, two passes in flight
    vllm                        torch, vLLM             padded                          thermostat
    zero0                       DeepSpeed, two ranks    packed                yes       responses that go on
    zero1                       the same, bf16          shared         yes              fp32 master weights
    zero2                       the same, bf16          packed   yes          yes       reset reference, pass rates
    zero3                       DeepSpeed, two ranks    packed   yes   yes    yes       cosine rate, reference

The run in halves also answers probes: they change nothing.
Checksums of a checkpoint's files are those of weights, moments, generators, data position and controllers.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import resume_ranks
import torch
from same_runs import without_times

from entrostat import list_controllers, make
from entrostat.logs.probe_log import FILE, read_probes
from llmtrain.policy.checkpoint import latest, load_state
from llmtrain.policy.model import load
from llmtrain.settings.config import (
    EvalConfig,
    ModelConfig,
    OptimConfig,
    RolloutConfig,
    SFTConfig,
    TaskConfig,
    TrainConfig,
)
from llmtrain.training.warmup import build_and_warm_up

ONE = ("resets", "packed", "shared", "asynchronous", "partial", "ahead")
TWO = ("zero0", "zero3")


def closed_loops() -> list[str]:
    """Controllers that hold a state of their own."""
    return [name for name in list_controllers() if any(make(name).state_dict().values())]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Function that returns the folder of the runs of some cases."""
    out = tmp_path_factory.mktemp("resume")
    config = TrainConfig(
        steps=10,
        save_every=5,
        threads=1,
        model=ModelConfig(hidden_size=64, num_layers=1, num_heads=2, intermediate_size=32),  # vLLM has heads of 32
        task=TaskConfig(train_problems=64, test_problems=4),
        sft=SFTConfig(examples=64, steps=5),
        rollout=RolloutConfig(prompts=4, n=4, max_new_tokens=6),
        optim=OptimConfig(lr=3e-3, mini_batch_size=2, micro_batch_tokens=256),
        eval=EvalConfig(every=5, k=1, samples=1),
    )
    build_and_warm_up(config, out / "model")
    config = replace(config, model=ModelConfig(path=str(out / "model")))

    def of(*names: str) -> Path:
        missing = [name for name in names if not (out / name).is_dir()]
        if missing:
            resume_ranks.main(out, config, missing)
        return out

    return of


def ends(folder: Path) -> list[dict[str, str]]:
    """Checksums of all files of the last checkpoints of the two runs in a folder."""
    return [json.loads((latest(folder / run) / "checksums.json").read_text()) for run in ("straight", "halves")]


def check_same(folder: Path, steps: int) -> None:
    straight, halves = ends(folder)
    assert len(straight) >= 7
    assert straight == halves
    lines = without_times(folder / "straight")
    assert [line["step"] for line in lines if "reward" in line] == list(range(steps))
    assert sum(line.get("grad_norm", 0) > 0 for line in lines) > steps // 2
    assert lines == without_times(folder / "halves")
    assert list(read_probes((folder / "halves" / FILE).read_bytes())) == list(range(0, steps + 1, 2))


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE)
def test_ten_steps_are_five_and_five_in_a_new_process(runs, name):
    check_same(runs(*ONE) / name, steps=10)


@pytest.mark.long
@pytest.mark.parametrize("name", closed_loops())
def test_a_controller_goes_on_in_a_new_process(runs, name):
    folder = runs(*closed_loops()) / name
    check_same(folder, steps=10)
    assert name in load_state(latest(folder / "halves"))["controller"]


@pytest.mark.long
def test_six_steps_with_vllm_are_three_and_three(runs):
    pytest.importorskip("vllm")
    check_same(runs("vllm") / "vllm", steps=6)
    assert "thermostat" in str(load_state(latest(runs("vllm") / "vllm" / "halves"))["controller"])


@pytest.mark.slow
def test_rollouts_in_flight_are_in_the_checkpoint(runs):
    folder = runs(*ONE) / "asynchronous"
    stale = [line["staleness/max"] for line in without_times(folder / "halves") if "reward" in line]
    assert stale[:2] == [0, 1]
    assert max(stale) == 2  # less in a step that took another batch for groups it left out
    middle, end = (load_state(folder / "halves" / "checkpoints" / f"step-{step:06d}") for step in (5, 10))
    versions = [version for each in middle["in_flight"] for version in each["version"].unique().tolist()]
    assert len(versions) == 2
    assert all(3 <= version <= 4 for version in versions)  # drawn before the checkpoint's weights, of version 5
    assert end["in_flight"] == []


@pytest.mark.slow
def test_a_reference_that_was_reset_is_in_the_checkpoint(runs):
    """The last reset is in the tenth and last step, whose reference is the policy after nine."""
    folder = runs(*ONE)
    assert not (latest(folder / "packed" / "halves") / "reference").exists()
    five, ten = (folder / "resets" / "halves" / "checkpoints" / f"step-{step:06d}" for step in (5, 10))
    weights = [load(at)[0].get_input_embeddings().weight for at in (five / "reference", ten / "reference", ten)]
    assert not torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[1], weights[2])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "passes"), [("partial", 0), ("ahead", 2)])
def test_responses_that_go_on_are_in_the_checkpoint(runs, name, passes):
    folder = runs(*ONE) / name / "halves"
    held, *asked = load_state(folder / "checkpoints" / "step-000005")["in_flight"]
    assert len(held["finished"]) == 4 * len(held["groups"]) > 0
    assert len(held["version"].unique()) > 1
    assert len(asked) == passes
    lines = [line for line in without_times(folder) if "reward" in line]
    assert all(line["staleness/max"] > line["staleness/mean"] > 0 for line in lines[2:])
    assert sum(line["rollout/passes"] for line in lines) > len(lines)


@pytest.mark.long  # test_deepspeed_engine.py has a shorter one
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [*TWO, "zero1", "zero2"])
def test_six_steps_of_two_ranks_are_three_and_three(runs, name):
    pytest.importorskip("deepspeed")
    folder = runs(*TWO, name) / name
    check_same(folder, steps=6)
    straight, _ = ends(folder)
    assert {path.split("/")[-1] for path in straight if path.endswith(".safetensors")} == {"model.safetensors"}
    assert not any(path.endswith(".pt") for path in straight)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["moved", pytest.param("moved often", marks=pytest.mark.long)])
def test_a_run_moves_between_numbers_of_ranks_and_stages(runs, name):
    """Two steps with each number of ranks and each ZeRO stage are as many of the torch engine."""
    pytest.importorskip("deepspeed")
    folder = runs(name) / name
    one, moved = without_times(folder / "straight"), without_times(folder / "halves")
    assert [line["step"] for line in moved] == [line["step"] for line in one]
    for a, b in zip(one, moved, strict=True):
        for key, value in a.items():
            assert b[key] == pytest.approx(value, rel=1e-3, abs=1e-4), key
    weights = [load(latest(folder / run))[0].state_dict() for run in ("straight", "halves")]
    for name, weight in weights[0].items():
        torch.testing.assert_close(weights[1][name], weight, rtol=0, atol=1e-4, msg=name)
