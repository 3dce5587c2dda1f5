import pytest
import torch

from entrostat import StepStats, Tokens, make

A = torch.tensor([2.0, -1.0, 0.0], dtype=torch.float64)
TOKENS = Tokens(logp=torch.zeros(3), old_logp=torch.zeros(3), advantage=A)


def weights(controller, **stats) -> list[float]:
    controller.observe(StepStats(**stats))
    return controller.plan(TOKENS).weight.tolist()


def test_stage_is_zero_then_linear():
    c = make("positive_reweight", variant="stage")
    seen = [weights(c, entropy=0.0, step=s, total_steps=8)[0] for s in range(9)]
    assert seen == [0, 0, 0, 0, 0, 0.25, 0.5, 0.75, 1.0]


def test_epoch_is_linear():
    c = make("positive_reweight", variant="epoch")
    assert [weights(c, entropy=0.0, epoch=e, epochs=5)[0] for e in range(1, 6)] == [0, 0.25, 0.5, 0.75, 1]
    with pytest.raises(ValueError, match="variant 'epoch' needs 2 epochs or more"):
        weights(c, entropy=0.0, epoch=1, epochs=1)


def test_guided_follows_the_entropy_within_bounds():
    c = make("positive_reweight", target=0.5, delta=0.75)
    assert c.plan(TOKENS).weight.tolist() == [1, 1, 1]
    entropies = (0.9, 0.9, 0.1, 0.1, 0.1, 0.1, 0.5)
    assert [weights(c, entropy=h)[0] for h in entropies] == pytest.approx([1.75, 2, 1.25, 0.5, 0, 0, 0])


def test_only_positive_advantages_are_touched():
    c = make("positive_reweight", lambda_init=0.3)
    assert c.plan(TOKENS).weight.tolist() == [0.3, 1, 1]


def test_nan_moves_nothing():
    c = make("positive_reweight")
    assert weights(c, entropy=float("nan"))[0] == 1


@pytest.mark.parametrize(("variant", "needed"), [("stage", "total_steps"), ("epoch", "epochs")])
def test_schedules_need_their_clock(variant, needed):
    with pytest.raises(ValueError, match=needed):
        make("positive_reweight", variant=variant).observe(StepStats(entropy=0.1))


def test_the_first_weight_lies_within_bounds():
    for start in (-0.1, 1.6):
        with pytest.raises(ValueError, match=r"lambda_init must lie in \[0, lambda_max\]"):
            make("positive_reweight", lambda_init=start, lambda_max=1.5)
    for start in (0.0, 1.5):
        assert make("positive_reweight", lambda_init=start, lambda_max=1.5).plan(TOKENS).weight.tolist()[0] == start
    make("positive_reweight", variant="stage", lambda_max=0.5)  # which has no use for either


def test_only_the_guided_variant_is_a_closed_loop():
    assert make("positive_reweight+aepo", variant="stage", **{"aepo.target": 0.5}).parts[0].controls is None
    with pytest.raises(ValueError, match="both closed loops"):
        make("positive_reweight+aepo", **{"aepo.target": 0.5})


def test_unknown_variant():
    with pytest.raises(ValueError, match="variant must be one of stage, epoch, entropy_guided"):
        make("positive_reweight", variant="cosine")


def test_a_training_without_steps():
    c = make("positive_reweight", variant="stage")
    c.observe(StepStats(entropy=1.0, step=0, total_steps=0))
    assert c.metrics()["positive_reweight/positive_weight"] == 0


def test_a_stage_begins_with_no_weight_and_ends_with_all():
    c = make("positive_reweight", variant="stage")
    assert c.plan(TOKENS).weight.tolist() == [0, 1, 1]
    assert weights(c, entropy=0.0, step=1, total_steps=1)[0] == 1


@pytest.mark.parametrize("given", [{"epoch": 1}, {"epochs": 3}])
def test_half_a_clock_is_none(given):
    with pytest.raises(ValueError, match="needs StepStats"):
        make("positive_reweight", variant="epoch").observe(StepStats(entropy=0.1, **given))
