import math
from dataclasses import replace

import pytest

from llmtrain.plan.derived import lay_out
from llmtrain.plan.efficiency import BACKWARD_ATTENTION, LINK_SHARE
from llmtrain.plan.plan_config import PlanConfig
from llmtrain.plan.training_time import compute_seconds, exchange_seconds, link, optimizer_seconds

CONFIG = PlanConfig(gpus=8, gpu="h100", mini_batch_size=128, mean_response_length=1000, mean_prompt_length=100)
PARAMS = 8_190_735_360
BODY = 36 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 12288)
RATE = 8 * 989e12 * 0.46


def compute(**changes) -> dict[str, float]:
    return compute_seconds(lay_out(replace(CONFIG, **changes)))


def test_six_flop_a_parameter_and_token():
    parts = compute()
    tokens = 4096 * 1100
    assert parts["forward and backward"] == pytest.approx(6 * BODY * tokens / RATE)
    assert parts["recomputation"] == pytest.approx(2 * BODY * tokens / RATE)
    assert parts["output layer"] == pytest.approx(6 * 151936 * 4096 * 4096 * 1000 / RATE), "responses only"


def test_attention_goes_with_the_square():
    layout = lay_out(CONFIG)
    forward = 2 * layout.mean_square_sequence * 4096 * 36 * 4096
    assert compute()["attention"] == pytest.approx(forward * (1 + 1 + 2.5) / RATE)
    assert layout.mean_square_sequence > layout.mean_sequence**2


def test_what_is_not_asked_for_costs_nothing():
    assert "recomputation" not in compute(gradient_checkpointing=False)
    assert "fresh statistics" not in compute()
    assert "fresh statistics" not in compute(stats="fresh", mini_batch_size=512)
    assert "log-probabilities of the reference" not in compute()


def test_fresh_statistics_are_a_forward_pass_of_all_but_the_first_mini_batch():
    parts = compute(stats="fresh", reference_model=True)
    assert parts["fresh statistics"] == pytest.approx(parts["log-probabilities of the rollout"] * 3 / 4)
    assert parts["log-probabilities of the reference"] == parts["log-probabilities of the rollout"]


def test_responses_without_advantage_are_not_trained_on():
    half, whole = compute(live_share=0.5), compute()
    assert half["forward and backward"] == whole["forward and backward"] / 2
    assert half["log-probabilities of the rollout"] == whole["log-probabilities of the rollout"]


@pytest.mark.parametrize("gpu", ["a100", "h100", "h200", "h20"])
def test_compute_divides_by_the_ranks(gpu):
    times = [sum(compute(gpus=gpus, gpu=gpu).values()) for gpus in (1, 2, 4, 8, 16, 64)]
    assert times == sorted(times, reverse=True)
    assert times[0] == pytest.approx(64 * times[-1])


@pytest.mark.parametrize("checkpointing", [False, True])
def test_a_reward_model_reads_twice_and_learns(checkpointing):
    """It takes two forward passes, one backward, one recomputed, and five matrix products with the output layer."""
    parts = compute(reward_model=True, gradient_checkpointing=checkpointing)
    alone = compute(gradient_checkpointing=checkpointing)
    again = alone.get("recomputation", 0.0)
    body, head = alone["forward and backward"] / 3, alone["output layer"] / 3
    attention = alone["attention"] / (1 + BACKWARD_ATTENTION + checkpointing)
    assert parts["reward model"] == pytest.approx(
        4 * body + again + (2 + BACKWARD_ATTENTION + checkpointing) * attention + 5 * head
    )
    assert parts["log-probabilities of the reference"] == parts["log-probabilities of the rollout"]


def test_what_models_beside_the_policy_add_to_the_exchange():
    """A gather moves 2 bytes per weight: one for a reference's pass, three for a reward model, which trains once."""
    once = 2 * PARAMS * 7 / 8 / (450e9 * LINK_SHARE)
    for stage, asked, learned in ((1, 0, 5), (2, 0, 1), (3, 1, 0)):
        layouts = [
            lay_out(replace(CONFIG, zero_stage=stage, **more))
            for more in ({}, {"reference_model": True}, {"reward_model": True})
        ]
        alone, reference, prime = (exchange_seconds(layout, 0.0) / once for layout in layouts)
        passes = math.ceil(layouts[0].tokens / 8 / CONFIG.micro_batch_tokens)
        assert reference - alone == pytest.approx(asked * passes)
        sums = {1: 0, 2: 4, 3: 2}[stage]
        assert prime - alone == pytest.approx(learned + (sums + asked * 4) * passes)


def test_exchange_by_hand():
    once = 2 * PARAMS * 7 / 8 / (450e9 * LINK_SHARE)
    assert exchange_seconds(lay_out(replace(CONFIG, zero_stage=0)), 0.0) == pytest.approx(4 * once * 4)
    assert exchange_seconds(lay_out(replace(CONFIG, zero_stage=1)), 0.0) == pytest.approx(5 * once * 4)
    layout = lay_out(replace(CONFIG, zero_stage=2))
    assert exchange_seconds(layout, 0.0) == pytest.approx(once * 4 * (4 * layout.micro_batches + 1))
    assert exchange_seconds(layout, 1e9) == exchange_seconds(layout, 0.0), "the arithmetic hides nothing"
    layout = lay_out(replace(CONFIG, zero_stage=3))
    assert exchange_seconds(layout, 1e9) == 0
    assert exchange_seconds(layout, 0.0) > 4 * once * 4 * layout.micro_batches
    assert exchange_seconds(lay_out(replace(CONFIG, gpus=1)), 0.0) == 0


def test_zero_3_gathers_weights_in_every_pass():
    """It gathers twice per micro-batch, and once per pass without gradient; counted on two ranks."""
    once = 2 * PARAMS * 7 / 8 / (450e9 * LINK_SHARE)
    layout = lay_out(replace(CONFIG, zero_stage=3))
    plain = exchange_seconds(layout, 0.0)
    slices = math.ceil(4096 * 1100 / 8 / 16384), math.ceil(1024 * 1100 / 8 / 16384)
    assert plain == pytest.approx(once * (4 * layout.micro_batches * (2 + 2) + slices[0]))
    for change, more in (({"reference_model": True}, slices[0]), ({"stats": "fresh"}, 3 * slices[1])):
        found = exchange_seconds(lay_out(replace(CONFIG, zero_stage=3, **change)), 0.0)
        assert found - plain == pytest.approx(once * more)
    tied = replace(layout, model=replace(layout.model, tied=True))
    model, sums = tied.model, 2 * 4 * layout.micro_batches  # sums of gradients take twice a gather
    gathers = plain / once - sums
    again = 1 + model.head_params / model.params
    part = model.params / layout.model.params
    assert exchange_seconds(tied, 0.0) == pytest.approx(once * part * (gathers * again + sums)), "the embedding twice"


def test_several_nodes_share_their_adapters():
    assert link(lay_out(CONFIG)) == pytest.approx(450e9 * LINK_SHARE)
    assert link(lay_out(replace(CONFIG, gpus=16))) == pytest.approx(400e9 * LINK_SHARE)


def test_the_optimizer_on_the_host_is_slower():
    assert optimizer_seconds(lay_out(replace(CONFIG, offload_optimizer=True))) > 10 * optimizer_seconds(lay_out(CONFIG))
    assert optimizer_seconds(lay_out(replace(CONFIG, zero_stage=0))) == pytest.approx(
        8 * optimizer_seconds(lay_out(replace(CONFIG, zero_stage=1)))
    )
