"""Low-rank updates: 0 at first, alone in training, and whole weights for all that is outside."""

from dataclasses import replace

import pytest
import torch

from entrostat.logs.runlog import read_metrics
from llmtrain.policy.checkpoint import latest
from llmtrain.policy.lora import ADAPTER, adapter_weights, attach, has_updates, layers, whole_weights
from llmtrain.policy.model import build_tiny, load, save
from llmtrain.policy.tokenizer import build_char_tokenizer
from llmtrain.settings.config import EngineConfig, ModelConfig, RolloutConfig
from llmtrain.training.check import check
from llmtrain.training.trainer import Trainer

pytest.importorskip("peft")
CONFIG = ModelConfig(lora_rank=4, lora_alpha=8)
IDS = torch.tensor([[2, 3, 4, 5, 3]])


def model_of(**settings):
    model = build_tiny(7, hidden=16, layers=2, heads=2, kv_heads=2, intermediate=16)
    attach(model, replace(CONFIG, **settings), seed=0)
    return model


def moved(model):
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for _, layer in layers(model):
            weight = layer.lora_B[ADAPTER].weight
            weight.copy_(torch.randn(weight.shape, generator=generator))
    return model


def test_nothing_changes_at_first_and_only_updates_train():
    plain, model = build_tiny(7, hidden=16, layers=2, heads=2, kv_heads=2, intermediate=16), model_of()
    assert torch.equal(plain(IDS).logits, model(IDS).logits)
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert trained
    assert all(".lora_" in name for name in trained)
    assert len(list(layers(model))) == 2 * 7
    assert not has_updates(plain)


def test_whole_weights_by_hand():
    model = moved(model_of(lora_target_modules=("q_proj",)))
    found = dict(whole_weights(model))
    plain = build_tiny(7, hidden=16, layers=2, heads=2, kv_heads=2, intermediate=16)
    assert found.keys() == dict(plain.named_parameters()).keys()
    layer = model.model.layers[1].self_attn.q_proj
    update = 8 / 4 * layer.lora_B[ADAPTER].weight @ layer.lora_A[ADAPTER].weight
    name = "model.layers.1.self_attn.q_proj.weight"
    torch.testing.assert_close(found[name], plain.get_parameter(name) + update)
    other = "model.layers.1.self_attn.k_proj.weight"
    assert torch.equal(found[other], plain.get_parameter(other))


@pytest.mark.parametrize("alpha", [8.0, 0.5])
def test_adapter_weights_make_the_whole_ones(alpha):
    model = moved(model_of(lora_alpha=alpha))
    plain = dict(build_tiny(7, hidden=16, layers=2, heads=2, kv_heads=2, intermediate=16).named_parameters())
    factors = dict(adapter_weights(model))
    assert len(factors) == 2 * len(list(layers(model)))
    for name, whole in whole_weights(model):
        layer = f"base_model.model.{name.removesuffix('.weight')}"
        update = 0.0
        if f"{layer}.lora_A.weight" in factors:
            update = factors[f"{layer}.lora_B.weight"] @ factors[f"{layer}.lora_A.weight"]
            assert update.any()
        torch.testing.assert_close(whole, plain[name] + update)


def test_a_saved_model_is_a_plain_one_with_the_same_logits(tmp_path):
    model = moved(model_of()).eval()
    save(model, build_char_tokenizer("01234"), tmp_path)
    loaded, _ = load(tmp_path)
    assert not has_updates(loaded)
    torch.testing.assert_close(loaded.eval()(IDS).logits, model(IDS).logits, rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore:Model has .tie_word_embeddings")
@pytest.mark.parametrize(
    ("modules", "names"),
    [
        (("nowhere",), "nowhere; .* down_proj, .*, v_proj"),
        (("q_proj", "nowhere"), "nowhere; "),
        (("proj",), "proj; "),
        (("q_proj", "embed_tokens"), "embed_tokens .*linear"),
        (("q_proj", "lm_head"), "lm_head .*linear"),
    ],
)
def test_a_layer_that_is_not_there_or_whose_update_would_be_lost_is_named(modules, names):
    with pytest.raises(ValueError, match=rf"model\.lora_target_modules: .*{names}"):
        model_of(lora_target_modules=modules)


def test_adapters_are_sent_to_vllm_alone(small):
    for name, rank in (("hf", 4), ("vllm", 0)):
        model, rollout = replace(small.model, lora_rank=rank), RolloutConfig(name=name, lora_sync="adapter")
        with pytest.raises(ValueError, match=r"--rollout\.name vllm and model\.lora_rank .*1 to 512; .*merged"):
            check(replace(small, model=model, rollout=rollout))
    with pytest.raises(ValueError, match=r"rollout\.lora_sync .*merged, adapter; got 'whole'"):
        replace(small, rollout=RolloutConfig(lora_sync="whole"))


def test_every_engine_trains_updates(small):
    pytest.importorskip("deepspeed")
    for stage in range(4):
        engine = EngineConfig(name="deepspeed", zero_stage=stage)
        check(replace(small, engine=engine, model=replace(small.model, lora_rank=4)))


def test_a_run_trains_updates_and_resumes_where_it_was(small, tmp_path):
    lora = replace(small.model, lora_rank=4)
    config = replace(small, model=lora, controller="clip_higher+entropy_bonus", optim=replace(small.optim, lr=1e-2))
    straight = replace(config, steps=2, out=str(tmp_path / "straight"))
    Trainer(straight, small.model.path).run()
    halves = replace(config, steps=1, out=str(tmp_path / "halves"))
    Trainer(halves, small.model.path).run()
    resumed = Trainer(replace(halves, steps=2), halves.out, resume=True)
    assert has_updates(resumed.model)
    resumed.run()
    ends = [dict(load(latest(run.out))[0].named_parameters()) for run in (straight, halves)]
    base = dict(load(small.model.path)[0].named_parameters())
    for name in base:
        assert torch.equal(ends[0][name], ends[1][name]), name
    assert torch.equal(ends[0]["model.embed_tokens.weight"], base["model.embed_tokens.weight"])
    name = "model.layers.0.mlp.up_proj.weight"
    assert not torch.equal(ends[0][name], base[name])
    assert any(line.get("grad_norm", 0) > 0 for line in read_metrics(straight.out))
