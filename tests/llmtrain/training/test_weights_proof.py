"""Engines that compute with other weights than they were sent are found, whatever they report."""

from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM, MixtralConfig

from entrostat.logs.runlog import read_metrics
from llmtrain.policy.model import save
from llmtrain.rollout.hf_engine import CopyEngine
from llmtrain.settings.config import EngineConfig, GuardConfig, ModelConfig, RewardConfig, TopologyConfig
from llmtrain.training.trainer import Trainer, TrainingStoppedError
from llmtrain.training.weights_proof import mismatch_limit, rounding_limit

WRONG = r"step {}: rollout engine {} does not compute with the weights {} it was sent: of tokens that it sampled its "
WRONG += (
    r"mean log-probability is -\d\.\d\d, the trainer's -\d+\.\d\d; they differ by \d\S* nats a token, .* explains 0.05"
)


class Copy(CopyEngine):
    """An engine of one's own, with a model of its own in the trainer's process."""

    starts = 1

    @classmethod
    def start(cls, start):
        return cls(start.folder, start.config)

    def hears(self, version: int) -> bool:
        return True

    def update(self, weights, version):
        super().update(weights, version)
        if not self.hears(version):
            with torch.no_grad():  # what a fault like that of a mixture of experts leaves
                self.model.get_input_embeddings().weight.mul_(-1)


class Deaf(Copy):
    """Other weights than those it was sent."""

    def hears(self, version):
        return False


class Restarted(Copy):
    """Starts again before it takes weights 2, and is deaf from then on."""

    def hears(self, version):
        self.starts = 1 + (version > 1)
        return version < 2


class Fading(Restarted):
    """The same, but nobody hears of a restart."""

    def hears(self, version):
        return version < 2


class Telling(Fading):
    """The same, and it tells all statistics of its responses, so that the trainer makes no pass over them."""

    def __init__(self, *args):
        super().__init__(*args)
        self.tells_statistics = True


def with_engine(small, engine, out, **guard):
    rollout = replace(small.rollout, name=f"{__name__}:{engine.__name__}")
    return replace(small, out=str(out), rollout=rollout, guard=GuardConfig(**guard))


def train(config):
    trainer = Trainer(config, config.model.path)
    trainer.run()
    return read_metrics(config.out)


@pytest.mark.parametrize(("engine", "step"), [(Deaf, 1), (Restarted, 2)])
def test_the_first_weights_after_a_start_are_proved(engine, step, small, tmp_path):
    with pytest.raises(TrainingStoppedError, match=WRONG.format(step, rf"\S+:{engine.__name__}", step)):
        train(with_engine(small, engine, tmp_path / "run"))


@pytest.mark.parametrize("engine", [Fading, Telling])
def test_a_gap_that_comes_later_stops_the_run_by_default(engine, small, tmp_path):
    said = r"step 2: mismatch \S+ is above guard.mismatch_above 0.05; .*step-000003"
    config = with_engine(small, engine, tmp_path / "run")
    with pytest.raises(TrainingStoppedError, match=said):
        train(config)
    before, after = read_metrics(config.out)[1:3]
    assert before["mismatch/logp_gap"] < 1e-5
    assert after["mismatch/logp_gap"] > 0.05
    assert "loss" in before
    assert "loss" not in after


@pytest.mark.parametrize("rewarded", [True, False])
def test_a_gap_of_told_statistics_leaves_out_all_updates_of_a_rollout(rewarded, small, tmp_path):
    """Its responses may earn a reward, with the weights turned, or none: then there is no update to tell."""
    reward = RewardConfig(length_weight=1.0 if rewarded else 0.0)
    config = replace(with_engine(small, Telling, tmp_path / "run", mismatch="skip"), reward=reward)
    assert config.updates > 1
    lines = [line for line in train(config) if "reward" in line]
    assert [line.get("guard/skipped", 0) for line in lines] == [0, 0, 1, 1]
    assert ["loss" in line for line in lines] == [True, True, False, False]
    assert [line["mismatch/logp_gap"] > 0.05 for line in lines] == [False, False, True, True]


def test_who_asks_for_it_goes_on(small, tmp_path, capsys):
    lines = train(with_engine(small, Deaf, tmp_path / "run", mismatch="warn"))
    assert lines[-1]["step"] == small.steps
    assert [line["guard/mismatch"] for line in lines if "guard/mismatch" in line] == [0, 1, 1, 1]
    assert capsys.readouterr().err.count("does not compute with the weights") == 1
    train(with_engine(small, Deaf, tmp_path / "without", mismatch_above=0.0))
    assert "guard" not in capsys.readouterr().err


def test_engines_that_are_right_are_not_stopped(small, tmp_path):
    lines = train(with_engine(small, Copy, tmp_path / "run"))
    assert all(line["mismatch/logp_gap"] < 1e-4 for line in lines if "reward" in line)


def test_limits_by_precision(small):
    assert rounding_limit(small) == mismatch_limit(small) == 0.05
    half = replace(small, engine=EngineConfig(bf16=True))
    vllm = replace(small, rollout=replace(small.rollout, name="vllm"))
    assert [rounding_limit(config) for config in (half, replace(vllm, device="cuda"), vllm)] == [0.2, 0.2, 0.05]
    stale = replace(small, topology=TopologyConfig(name="ray", placement="disaggregated", staleness=1))
    assert (mismatch_limit(stale), rounding_limit(stale)) == (0.0, 0.05)
    given = replace(small, guard=GuardConfig(mismatch_above=0.3))
    assert (mismatch_limit(given), rounding_limit(given)) == (0.3, 0.05)


@pytest.fixture(scope="module")
def experts(small, tmp_path_factory):
    """A mixture of experts, whose parameters have other names than a checkpoint's."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(small.model.path)
    sizes = {"hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 2}
    experts = {"num_local_experts": 4, "num_experts_per_tok": 2, "num_hidden_layers": 2}
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "bos_token_id": None}
    config = MixtralConfig(vocab_size=len(tokenizer), max_position_embeddings=64, **sizes, **experts, **ends)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3.0)  # so that tokens and experts matter
    path = tmp_path_factory.mktemp("models") / "experts"
    save(model, tokenizer, path)
    return replace(
        small,
        steps=3,
        model=ModelConfig(path=str(path)),
        rollout=replace(small.rollout, name="vllm", kv_cache_gib=0.1),
        eval=replace(small.eval, every=0),
    )


@pytest.mark.slow
def test_a_mixture_of_experts_trains_with_vllm(experts, tmp_path):
    pytest.importorskip("vllm", reason="make install")
    lines = train(replace(experts, out=str(tmp_path / "run")))
    assert [line["mismatch/logp_gap"] < 1e-4 for line in lines] == [True] * 3


@pytest.mark.slow
def test_experts_that_vllm_leaves_unpacked_are_found(experts, tmp_path, monkeypatch):
    """So does vLLM by itself on a CPU: names, checksums and version are right."""
    pytest.importorskip("vllm", reason="make install")
    from llmtrain.rollout.vllm import receiver

    monkeypatch.setattr(receiver, "forget_packed_experts", lambda model: None)
    with pytest.raises(TrainingStoppedError, match=WRONG.format(1, "vllm", 1)):
        train(replace(experts, out=str(tmp_path / "run")))
