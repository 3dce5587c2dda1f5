"""DeepSpeed on 1, 2 and 4 gloo ranks that hold different numbers of tokens: the update is that of the torch engine."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import deepspeed_ranks
import pytest
import torch
import yaml
from mortal import mortal
from tests.ranks import group, run_ranks

from entrostat.logs.runlog import read_lines, read_metrics
from llmtrain.plan.derived import lay_out
from llmtrain.plan.memory import Memory
from llmtrain.plan.plan_config import PlanConfig
from llmtrain.policy.checkpoint import checkpoints, latest, step_of
from llmtrain.policy.deepspeed_engine import TAG
from llmtrain.policy.model import load
from llmtrain.settings.config import EngineConfig, TrainConfig
from llmtrain.settings.nested import to_dict
from llmtrain.training.check import check, check_sft

pytest.importorskip("deepspeed")
pytestmark = pytest.mark.timeout(900)
SIZES = (1, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 4)))
"""Numbers of ranks; the quick tests need one."""
STAGES = ("zero0", "zero1", "zero2", "zero3")


@pytest.fixture(scope="module")
def learns(small):
    """A run in which every step has a gradient, and advantages depend on the lengths of all ranks' responses."""
    optim, reward = replace(small.optim, micro_batch_tokens=128), replace(small.reward, overlong_buffer=8)
    run = replace(small, steps=2, controller="entropy_bonus+steer", optim=optim, reward=reward, threads=1)
    return replace(run, advantage="reinforce_pp")


@pytest.fixture(scope="module")
def found(tmp_path_factory, learns):
    """Function that returns what so many ranks found; they run when first asked for."""

    @cache
    def of(size: int, *further: str) -> dict:
        out = tmp_path_factory.mktemp(f"ranks-{size}")
        ranks = [variables | {"TORCH_EXTENSIONS_DIR": out / "compiled"} for variables in group(size)]
        run_ranks(ranks, deepspeed_ranks.main, out, learns, *further)
        assert not list(Path("/dev/shm").glob(f"deepspeed_*_{ranks[0]['MASTER_PORT']}_*"))  # nobody would give it back
        assert not (out / "compiled").exists()
        file = out / "found.pt"
        return (torch.load(file, weights_only=True) if file.exists() else {}) | {"out": out}

    return of


def distance(a: torch.Tensor, b: torch.Tensor) -> float:
    """Largest difference, relative to the largest number."""
    return float((a - b).abs().max() / b.abs().max())


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_gradients_are_those_of_the_torch_engine(found, size):
    """1e-6 relative, fp32; surrogates of tokens and of sequences, low-rank updates, and on 2 ranks every option."""
    gradients = found(size, "gradients")["gradients"]
    assert {name for _, name in gradients} >= {"torch", *(STAGES[2:] if size == 1 else STAGES[1:])}
    assert {("lora", "zero2"), ("lora", "zero3")} <= gradients.keys()
    options = {"offload2", "offload3", "checkpointed2", "checkpointed3"}
    assert size != 2 or options <= {name for _, name in gradients}
    for (spec, name), result in gradients.items():
        expected = gradients[spec, "torch"]
        assert distance(result["gradient"], expected["gradient"]) < 1e-6, (spec, name)
        for key in ("loss", "grad_norm", "entropy", "flow/total", "touched"):
            assert result["metrics"][0][key] == pytest.approx(expected["metrics"][0][key], rel=2e-6), (spec, name, key)


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_three_clipped_steps(found, stage):
    """Moments show the clipping, which AdamW's weights hide; weights show decay and warm-up."""
    expected, result = found(2)["steps"]["torch"], found(2)["steps"][stage]
    assert expected["metrics"][0]["grad_norm"] > 4 * 0.05
    assert distance(result["gradient"], expected["gradient"]) < 2e-5
    assert float((result["weights"] - expected["weights"]).abs().max()) < 2e-6


@pytest.mark.slow
@pytest.mark.parametrize("stage", [2, 3])
def test_low_rank_updates_are_merged_and_sent_as_by_the_torch_engine(found, stage):
    """After three clipped steps, read as whole weights and as an adapter."""
    expected, result = found(2)["steps"]["lora-torch"], found(2)["steps"][f"lora-{stage}"]
    assert distance(result["gradient"], expected["gradient"]) < 2e-5
    assert float((result["weights"] - expected["weights"]).abs().max()) < 2e-6
    assert float((result["adapter"] - expected["adapter"]).abs().max()) < 5e-6
    assert 0 < len(expected["adapter"]) < len(expected["weights"])


@pytest.mark.slow
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_bf16_has_master_weights(found, stage):
    """They move as in fp32, also where bf16 would lose three steps of 1e-3 on a weight of 1; rounded, they are used."""
    expected, result = found(2)["masters"]["torch"], found(2)["masters"][f"bf16-{stage}"]
    assert torch.equal(result["weights"], result["end"].bfloat16().float())
    ones = expected["start"] == 1
    assert ones.any()
    assert result["weights"][ones].eq(1).any()
    assert result["end"][ones].ne(1).all()
    moves = [x["end"] - x["start"] for x in (result, expected)]
    for some in (ones, ~ones):
        assert torch.cosine_similarity(moves[0][some], moves[1][some], dim=0) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "training", "between"),
    [
        (1, 2 + 4 + 2 + 12 / 2, 2 + 4 + 12 / 2),
        (2, 2 + (4 + 12) / 2, 2 + 12 / 2),
        (3, (2 + 4 + 12) / 2, (2 + 4 + 12) / 2),
    ],
)
def test_state_takes_the_bytes_that_the_plan_counts(found, stage, training, between):
    """On two ranks, a parameter: weights, gradients (of a pass, and summed in fp32), optimizer."""
    assert found(2)["bytes"][f"bf16-{stage}"] == pytest.approx([training, between], rel=0.02)
    config = PlanConfig(model="Qwen3-8B-Base", gpus=2, gpu="h200", zero_stage=stage)
    memory = Memory(lay_out(config))
    parts = ("weights", "gradients", "gradients of a pass", "optimizer")
    for phase, expected in ((memory.training, training), (memory.rollout, between)):
        assert sum(phase.get(part, 0) for part in parts) == expected * memory.layout.model.params


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["nan", "inf"])
@pytest.mark.parametrize("stage", STAGES)
def test_a_fault_on_one_rank_raises_on_all_and_moves_nothing(found, stage, kind):
    fault = found(2)["faults"][stage, kind]
    assert fault["message"].startswith("loss is nan on rank 0" if kind == "nan" else "gradient norm is")
    assert (fault["raised"], fault["moved"]) == (2, 0)


@pytest.mark.slow
def test_zero3_gathers_the_head_only_while_it_runs(found):
    seen = found(2)["head"]
    assert {place for place, _ in seen} == {"last layer", "head", "last layer, backward", "after"}
    assert {place for place, gathered in seen if gathered} == {"head"}
    assert all(gathered for place, gathered in seen if place == "head")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["whole", "adapter"])
def test_zero3_gathers_one_weight_at_a_time_to_send_or_save_it(found, name):
    """With the factors of its update, of rank 4 and at most 64 wide."""
    read = found(2)["read"][name]
    assert len(read["sizes"]) > 10
    for size, gathered in read["sizes"]:
        assert size <= gathered <= size + 2 * 4 * 64 * (size > 64)
    assert read["after"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["zero0", "zero2", "zero3", "bf16-2", "lora-2", "lora-3"])
def test_a_new_engine_goes_on_from_shards_bit_for_bit(found, name):
    shards = found(2)["shards"][name]
    assert not torch.equal(shards["before"], shards["resumed"])
    assert torch.equal(shards["resumed"], found(2)["steps"][name]["weights"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["zero0", "zero2", "zero3", "bf16-2", "lora-2", "lora-3"])
def test_a_new_engine_goes_on_from_a_checkpoint_of_an_earlier_version(found, name):
    shards = found(2)["shards"][name]
    assert torch.equal(shards["earlier"], shards["resumed"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["zero0", "zero2", "zero3"])
def test_a_new_engine_goes_on_with_its_own_settings(found, name):
    """Learning rate, betas and weight decay of the third step are others, as on the torch engine."""
    shards = found(2)["shards"]
    expected, result = shards["edited"], shards[name]["edited"]
    assert float((expected - shards[name]["resumed"]).abs().max()) > 1e-3
    assert float((result - expected).abs().max()) < 1e-5


@pytest.mark.slow
def test_checkpoints_that_a_new_engine_cannot_go_on_from(found):
    settings = ("engine.name torch", "deepspeed"), ("world_size 3", "2"), ("zero_stage 1", "3"), ("bf16 True", "False")
    for said, (had, has) in zip(found(2)["shards"]["refused"], settings, strict=True):
        assert f"has {had}, this run has {has}" in said


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "models", "optimizers"), [("zero0", 1, 0), ("zero2", 1, 2), ("zero3", 2, 2)])
def test_an_earlier_checkpoint_that_lacks_a_file_is_refused(found, stage, models, optimizers):
    """By every rank, before one reads it: the others would wait for the one that stops."""
    folder = found(2)["out"] / "earlier" / stage
    fix = f"put them back, or remove {folder} to go on from an earlier checkpoint"
    for kind, count in (("model_states", models), ("optim_states", optimizers)):
        said = f"{folder / TAG} has {count - 1} of {count} files *{kind}.pt: {fix}" if count else ""
        assert found(2)["shards"]["incomplete"][stage, kind] == [said] * 2


def lines(run: Path) -> list[dict]:
    times = ("tokens_per_second", "time/")
    return [{k: v for k, v in line.items() if not k.startswith(times)} for line in read_metrics(run)]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("stage", [2, 3])
def test_a_policy_that_is_only_asked_answers_as_before_and_is_divided_under_zero3(found, stage, dtype):
    asked = found(2)["asked"][stage, dtype]
    for told in asked["told"]:
        torch.testing.assert_close(told, asked["expected"], rtol=0, atol=1e-5 if dtype == torch.float32 else 1e-2)
    shares = (0.5, 0) if stage == 3 else (1, 1)
    assert [asked[name] / asked["whole"] for name in ("kept", "gathered")] == pytest.approx(shares, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("trained", [True, False])
def test_zero3_never_puts_a_whole_model_on_a_device(found, trained):
    """Under the other stages it is whole there anyway."""
    assert [found(2)["placed"][stage, trained] for stage in (2, 3)] == [1, 0]


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_the_reward_model_learns_on_ranks_as_in_one_process(found, stage):
    expected, result = found(2)["rewards"]["torch"], found(2)["rewards"][stage]
    for mine, theirs in zip(result["metrics"], expected["metrics"], strict=True):
        assert mine == pytest.approx(theirs, rel=1e-4)
    assert float((result["weights"] - expected["weights"]).abs().max()) < 1e-5
    assert expected["metrics"][1]["prime/loss"] < expected["metrics"][0]["prime/loss"]


@pytest.mark.slow
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_the_reward_model_takes_steps_that_bf16_weights_would_not(found, stage):
    """Of a weight of 1 the next bf16 number is 8e-3 away, two steps of AdamW with 1e-6 go 2e-6."""
    moved = found(2)["small steps"][f"bf16-{stage}"].abs()
    assert float((moved > 1e-7).float().mean()) > 0.9
    assert float(moved.max()) < 2.5e-6


FURTHER = ("lora", "filtered", "prime")


@pytest.fixture(params=["plain", *(pytest.param(x, marks=pytest.mark.long) for x in FURTHER)])
def out(request, found) -> Path:
    """Where the runs lie: of all weights, of low-rank updates, of groups that differ, and with two models more."""
    return found(2, *(FURTHER if request.param in FURTHER else ()))["out"] / request.param


@pytest.mark.slow
def test_a_run_on_two_ranks_is_that_of_one_process(out):
    """Same prompts, draws, mini-batches and plans: every metric of two steps, evaluations too."""
    one, two = (lines(out / name) for name in ("torch", "zero3"))
    assert [line["step"] for line in one] == [line["step"] for line in two] == [0, 1, 2]
    assert all(line["grad_norm"] > 0 for line in one[:2])
    for a, b in zip(one, two, strict=True):
        assert a.keys() == b.keys()
        for key, value in a.items():
            assert b[key] == pytest.approx(value, rel=1e-4, abs=1e-5), key
    assert len(read_lines(out / "zero3" / "samples.jsonl")) == 2
    assert ["time/idle" in read_metrics(out / name)[0] for name in ("torch", "zero3")] == [False, True]


@pytest.mark.slow
def test_a_resumed_run_is_the_uninterrupted_one(out):
    straight, halves = (out / name for name in ("zero3", "halves"))
    assert lines(straight) == lines(halves)
    ends = [load(latest(run))[0].state_dict() for run in (straight, halves)]
    assert all(torch.equal(ends[0][key], ends[1][key]) for key in ends[0])


@pytest.mark.slow
def test_a_checkpoint_holds_an_ordinary_model(out, learns):
    """Whole weights, though no rank had all of them: they are those the torch engine came to."""
    models = [load(latest(out / run))[0] for run in ("torch", "zero3")]
    for (name, a), b in zip(models[0].named_parameters(), models[1].parameters(), strict=True):
        torch.testing.assert_close(b, a, rtol=0, atol=2e-5, msg=name)
    start = load(learns.model.path)[0].model.layers[0].mlp.up_proj.weight
    assert not torch.equal(start, models[1].model.layers[0].mlp.up_proj.weight)


def start_run(config, steps: int, **variables: str) -> subprocess.Popen:
    """`llmtrain train --nproc 2` with these environment variables, once it has written a checkpoint."""
    engine = EngineConfig(name="deepspeed", zero_stage=3)
    config = replace(config, nproc=2, steps=steps, save_every=2, engine=engine)
    file = Path(config.out).with_suffix(".yaml")
    file.write_text(yaml.safe_dump(to_dict(config)))
    command = [sys.executable, "-m", "llmtrain", "train", "--config", str(file)]
    env = os.environ | variables
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    while not checkpoints(config.out):
        assert process.poll() is None, process.communicate()[1][-3000:]
        time.sleep(0.05)
    return process


def children(pid: int) -> list[int]:
    """Processes that `pid` started, oldest first (Linux)."""
    return [int(x) for x in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.long
def test_ctrl_c_leaves_a_run_that_one_rank_can_go_on_with(learns, tmp_path):
    config = replace(learns, out=str(tmp_path / "run"))
    process = start_run(config, steps=500)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert out.count("stopped after step") == 1
    assert f"continue with: llmtrain resume {config.out}" in out
    assert out.count("zero_stage: 3") == 1
    steps = step_of(latest(config.out)) + 1
    resume = [sys.executable, "-m", "llmtrain", "resume", config.out, "--nproc", "1", "--steps", str(steps)]
    done = subprocess.run(resume, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert [line["step"] for line in read_metrics(config.out)] == [*range(steps + 1)]


@pytest.mark.long
def test_a_lost_rank_ends_the_run(learns, tmp_path):
    config = replace(learns, out=str(tmp_path / "run"))
    process = start_run(config, steps=500)
    ranks = children(process.pid)
    os.kill(ranks[1], signal.SIGKILL)
    began = time.monotonic()
    _, errors = process.communicate(timeout=60)
    print(f"named after {time.monotonic() - began:.1f} s")
    assert process.returncode == 2
    assert "error: rank 1 was lost: killed by SIGKILL; last checkpoint:" in errors
    assert str(latest(config.out)) in errors
    assert not any(Path(f"/proc/{pid}").exists() for pid in ranks)


@pytest.mark.long
@pytest.mark.parametrize(("code", "cause"), [(-11, "killed by SIGSEGV"), (1, "it ended with exit code 1")])
def test_a_rank_that_dies_in_its_backward_pass_ends_the_run(learns, tmp_path, code, cause):
    """Also with the code of a rank that has said what was wrong."""
    config = replace(learns, out=str(tmp_path / "run"), controller="mortal:Mortal")
    process = start_run(config, steps=500, **mortal(code))
    ranks = children(process.pid)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2, errors[-3000:]
    assert errors.splitlines()[-1] == f"error: rank 1 was lost: {cause}; last checkpoint: {latest(config.out)}"
    assert not any(Path(f"/proc/{pid}").exists() for pid in ranks)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"zero_stage": 4}, r"zero_stage .*\[0, 3\]; got 4"),
        ({"name": "fsdp"}, "name .*torch, deepspeed; got 'fsdp'"),
        ({"zero_stage": 2, "offload_param": True}, "offload_param .*engine.zero_stage 3 .*2"),
        ({"zero_stage": 0, "bf16": True}, "bf16 .*engine.zero_stage 1 .*0"),
        ({"name": "torch", "offload_optimizer": True}, "offload_optimizer .*engine.name deepspeed"),
        ({"name": "torch", "deepspeed": {"steps_per_print": 1}}, "deepspeed .*engine.name deepspeed"),
    ],
)
def test_engine_settings_that_cannot_be(changes, message):
    with pytest.raises(ValueError, match=rf"engine\.{message}"):
        TrainConfig(engine=EngineConfig(**({"name": "deepspeed"} | changes)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gradient_accumulation_steps": 2}, "gradient_accumulation_steps cannot be set: use optim.micro_batch_tokens"),
        ({"gradient_clipping": 0.1}, "gradient_clipping cannot be set: use optim.max_grad_norm"),
        ({"gradient_allreduce_op": "sum"}, "gradient_allreduce_op cannot be set: leave it out"),
        ({"bf16": {"enabled": True}}, "bf16 cannot be set: use engine.bf16"),
        ({"zero_optimization": {"stage": 3}}, "zero_optimization.stage cannot be set: use engine.zero_stage"),
        ({"zero_optimization": True}, "zero_optimization.stage cannot be set"),
        (
            {"zero_optimization": {"offload_param": {"device": "cpu"}}},
            "zero_optimization.offload_param.device cannot be set: use engine.offload_param",
        ),
        ({"zero_optimization": {"offload_optimizer": None}}, "zero_optimization.offload_optimizer.device cannot"),
    ],
)
def test_settings_of_deepspeed_that_the_engine_relies_on(small, settings, message):
    """Otherwise they change gradients without a word, or let ranks wait for each other for ever."""
    config = replace(small, engine=EngineConfig(name="deepspeed", deepspeed=settings))
    for told in (check, check_sft):
        with pytest.raises(ValueError, match=f"^engine.deepspeed: {message}"):
            told(config)


def test_other_settings_of_deepspeed_may_be_given(small):
    zero = {"stage3_max_reuse_distance": 0, "offload_optimizer": {"pin_memory": True}}
    check(replace(small, engine=EngineConfig(name="deepspeed", deepspeed={"zero_optimization": zero})))


def test_ranks_that_cannot_be(small):
    with pytest.raises(ValueError, match=r"one process, not 2: .*--engine\.name deepspeed"):
        check(replace(small, nproc=2))
    three = replace(small, nproc=3, engine=EngineConfig(name="deepspeed"))
    with pytest.raises(ValueError, match=r"optim\.mini_batch_size 4 × rollout\.n 4 .* 3 ranks"):
        check(three)
    check_sft(three)  # a warm-up has no mini-batches
    eight = replace(three, nproc=8)
    check(eight)  # two responses each
    shared = replace(small.optim, layout="shared")
    for whole in ({"controller": "gtpo"}, {"advantage": "prime"}, {"optim": shared}):
        with pytest.raises(ValueError, match=r"mini_batch_size 4 .*8 ranks: groups"):
            check(replace(eight, **whole))
        check(replace(eight, **whole, nproc=4))
