"""Compiled layers: the run without them but for rounding; rollouts that do not meet them."""

import os
import subprocess
import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
import yaml
from torch import nn
from torch._dynamo.utils import counters

from entrostat.logs.runlog import read_metrics
from llmtrain.policy.compiled import compile_layers, layers_of
from llmtrain.policy.model import build_tiny
from llmtrain.policy.tokenizer import build_char_tokenizer
from llmtrain.rollout.hf import HFRollout
from llmtrain.settings.config import EngineConfig
from llmtrain.settings.nested import to_dict
from llmtrain.training.check import check
from llmtrain.training.run import train_run
from llmtrain.training.warmup import build_and_warm_up

KEYS = {"entropy", "reward", "loss", "grad_norm", "flow/total"}
TOKENIZER = build_char_tokenizer("0123456789+-*/()=: ")


def make_model():
    return build_tiny(len(TOKENIZER), hidden=32, layers=2, heads=4, kv_heads=2, intermediate=48, seed=3)


@pytest.fixture
def called(monkeypatch):
    """Calls of compiled layers; the "compiler" returns what it was given."""
    calls, plain = Counter(), nn.Module.compile

    def backend(graph, inputs):
        def counted(*given):
            calls["compiled"] += 1
            return graph(*given)

        return counted

    monkeypatch.setattr(nn.Module, "compile", lambda self, **options: plain(self, backend=backend, **options))
    yield calls
    torch.compiler.reset()


def test_layers_are_the_outermost_list():
    model = make_model()
    model.model.layers[0].experts = nn.ModuleList(nn.Identity() for _ in range(5))
    assert layers_of(model) is model.model.layers
    model.model.layers = nn.Identity()
    with pytest.raises(ValueError, match=r"^engine\.torch_compile: .*layers$"):
        layers_of(model)


def test_weights_that_are_divided_are_not_compiled():
    assert EngineConfig(name="deepspeed", zero_stage=2, torch_compile=True).torch_compile
    with pytest.raises(ValueError, match=r"engine\.torch_compile .*engine\.zero_stage 2 .*3"):
        EngineConfig(name="deepspeed", zero_stage=3, torch_compile=True)


@pytest.mark.slow
@pytest.mark.parametrize("engine", [EngineConfig(torch_compile=True), EngineConfig()])
def test_a_machine_without_a_compiler_is_refused_before_a_model_is_loaded(small, monkeypatch, engine):
    monkeypatch.setenv("CXX", "none++")
    needs = r"engine\.torch_compile .*'none\+\+': .*CXX"
    with pytest.raises(ValueError, match=needs) if engine.torch_compile else nullcontext():
        check(replace(small, engine=engine))


@pytest.mark.slow
def test_rollouts_do_not_meet_compiled_layers(called):
    model, plain = make_model(), make_model()
    compile_layers(model)
    model(input_ids=torch.tensor([[3, 4, 5]]))
    assert called["compiled"] >= 2
    called.clear()
    found = [
        HFRollout(x, TOKENIZER, max_new_tokens=5, generator=torch.Generator().manual_seed(0)).generate([[3, 4], [5]], 3)
        for x in (plain, model)
    ]
    assert not called
    assert torch.equal(found[0].response_ids, found[1].response_ids)
    assert torch.equal(found[0].logp, found[1].logp)


def test_a_model_is_warmed_up_without(small, called, tmp_path):
    """It is kept for all runs, with and without compiled layers."""
    sizes = replace(small.model, path=None, hidden_size=32, num_layers=2, num_heads=2, intermediate_size=64)
    compiling = replace(small, model=sizes, sft=replace(small.sft, steps=1), engine=EngineConfig(torch_compile=True))
    build_and_warm_up(compiling, tmp_path / "model")
    assert not called


def are_alike(run, other):
    """Compare the metrics of two runs of three steps."""
    assert sum("grad_norm" in line for line in run) == 3
    for one, two in zip(run, other, strict=True):
        for key in KEYS & one.keys():
            assert two[key] == pytest.approx(one[key], rel=2e-4, abs=1e-6), key


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "checkpointing"), [("shared", False), pytest.param("padded", True, marks=pytest.mark.long)]
)
def test_a_run_with_compiled_layers_is_the_run_without(small, tmp_path, layout, checkpointing):
    torch.compiler.reset()
    counters.clear()
    found = []
    for name in ("plain", "compiled"):
        engine = EngineConfig(torch_compile=name == "compiled", gradient_checkpointing=checkpointing)
        config = replace(small, out=str(tmp_path / name), steps=3, engine=engine, threads=1)
        assert train_run(replace(config, optim=replace(small.optim, layout=layout))) == 0
        found.append(read_metrics(config.out))
    assert counters["stats"]["unique_graphs"] >= 2, "with and without gradients"
    assert 2 * counters["frames"]["ok"] >= counters["frames"]["total"]
    are_alike(*found)


@pytest.mark.long
def test_two_ranks_with_compiled_layers_train_as_one_process_without(small, tmp_path):
    pytest.importorskip("deepspeed")
    engine = EngineConfig(name="deepspeed", zero_stage=2, torch_compile=True)
    alone = replace(small, out=str(tmp_path / "one"), steps=3, threads=1)
    ranks = replace(alone, out=str(tmp_path / "two"), nproc=2, engine=engine)
    assert train_run(alone) == 0
    file = tmp_path / "two.yaml"
    file.write_text(yaml.safe_dump(to_dict(ranks)))
    cache = tmp_path / "cache"
    command = [sys.executable, "-m", "llmtrain", "train", "--config", file]
    env = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(cache)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert any(cache.rglob("*.so")), "layers were compiled"
    are_alike(*(read_metrics(config.out) for config in (alone, ranks)))
