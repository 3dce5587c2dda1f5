"""How a model makes its logits is found by experiment, and a policy that would be wrong is refused in a line."""

import math

import pytest
import torch
from benchmarks.model_families import tiny
from transformers import AutoModelForCausalLM, MuseGlimmerForConditionalGeneration

from llmtrain.policy.logits import Transform, transform_of
from llmtrain.policy.policy import Policy
from llmtrain.sequences.batch import Batch


def model_of(family, dtype=torch.float32, **changes):
    config = tiny(family)
    for name, value in changes.items():
        setattr(config.get_text_config(), name, value)
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config, dtype=dtype)


@pytest.mark.parametrize(
    ("family", "changes", "expected"),
    [
        ("qwen2", {}, Transform()),
        ("gemma2", {"final_logit_softcapping": 0.05}, Transform(cap=0.05)),
        ("gemma4", {"final_logit_softcapping": 7.0}, Transform(cap=7.0)),  # under text_config
        ("recurrent_gemma", {"logits_soft_cap": 3.0}, Transform(cap=3.0)),
        ("cohere", {"logit_scale": 7.0}, Transform(scale=7.0)),
        ("granite", {"logits_scaling": 8.0}, Transform(scale=1 / 8)),  # divides
        ("hyperclovax", {"logits_scaling": 8.0}, Transform(scale=8.0)),  # multiplies
        ("falcon_h1", {"lm_head_multiplier": 0.3}, Transform(scale=0.3)),
        ("inkling_text", {"logits_mup_width_multiplier": 24.0}, Transform(before=1 / 24)),  # of the hidden states
    ],
)
def test_scale_and_cap_are_found_wherever_a_family_puts_them(family, changes, expected):
    found = transform_of(model_of(family, **changes))
    assert found[:2] == pytest.approx(expected[:2], rel=1e-6)
    assert found.cap == expected.cap


def test_a_factor_is_applied_before_a_cap():
    """TRL pull request 5691: applied after it, log-probabilities are others."""
    torch.manual_seed(0)
    model = MuseGlimmerForConditionalGeneration(tiny("muse_glimmer")).eval()
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(100)
    ids = torch.arange(40, 49)
    policy = Policy(model)
    found = policy.all_stats(Batch(ids, torch.tensor([3]), torch.tensor([6])), 100)
    with torch.no_grad():
        logits = model(input_ids=ids[None]).logits[0, 2:8]
    assert logits.abs().max() > 4
    assert policy.output.transform == Transform(scale=0.3, cap=5.0)
    own = logits.log_softmax(-1).gather(1, ids[3:, None])[:, 0]
    torch.testing.assert_close(found.logp, own, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("family", ["gemma2", "granite", "cohere"])
def test_they_are_found_in_each_dtype(family, dtype):
    expected = transform_of(model_of(family))
    model = model_of(family, dtype)
    assert transform_of(model) == expected
    ids = torch.arange(40, 49)
    found = Policy(model).all_stats(Batch(ids, torch.tensor([3]), torch.tensor([6])), 100)
    with torch.no_grad():
        own = model(input_ids=ids[None]).logits[0, 2:8].float().log_softmax(-1)
    assert found.logp.float() == pytest.approx(
        own.gather(1, ids[3:, None])[:, 0], abs=0.05 if dtype == torch.bfloat16 else 1e-5
    )


@pytest.mark.parametrize(
    ("family", "reason"),
    [
        ("bert", "layer between"),
        ("rembert", "layer between"),
        ("xlnet", "see those after them"),
        ("prophetnet", "once for each token"),
    ],
)
def test_a_model_of_another_kind_is_refused_by_name(family, reason):
    with pytest.raises(ValueError, match=reason) as refused:
        Policy(model_of(family))
    assert f"(model_type {family})" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda logits: logits.clamp(-2, 2), id="clamped"),
        pytest.param(lambda logits: logits.square(), id="squared"),
        pytest.param(lambda logits: logits + 0.5, id="shifted"),
        pytest.param(lambda logits: logits.masked_fill(torch.arange(logits.shape[-1]) > 200, -math.inf), id="masked"),
        pytest.param(lambda logits: logits[..., :200], id="cut"),
        pytest.param(lambda logits: 5 * torch.atan(logits / 5), id="another cap"),
    ],
)
def test_other_changes_of_logits_are_refused(change):
    model = model_of("qwen2")
    plain = type(model).forward

    class Changed(type(model)):
        def forward(self, *given, **named):
            output = plain(self, *given, **named)
            output.logits = change(output.logits)
            return output

    model.__class__ = Changed
    with pytest.raises(ValueError, match=r"Changed \(model_type qwen2\)"):
        Policy(model)


def test_a_layout_in_which_sequences_see_each_other_is_refused_and_another_named():
    model = model_of("bloom")
    Policy(model)
    with pytest.raises(ValueError, match=r"'packed' .*BloomForCausalLM .*--optim.layout padded"):
        Policy(model, layout="packed")


def test_a_family_that_does_not_run_with_the_attention_by_sequence_keeps_torchs():
    model = model_of("deepseek_v32")
    Policy(model, layout="packed")
    assert model.config._attn_implementation == "sdpa"


def test_the_check_changes_nothing():
    model = model_of("qwen2").train()
    before, state = {name: x.clone() for name, x in model.state_dict().items()}, torch.random.get_rng_state()
    Policy(model, layout="shared")
    assert model.training
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(x, before[name]) for name, x in model.state_dict().items())
    assert all(weight.grad is None for weight in model.parameters())
    assert not model.lm_head._forward_hooks
