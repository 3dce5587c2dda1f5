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


def test_the_first_weight_lies_within_bounds():
    for start in (0.0, 1.5):
        assert make("positive_reweight", lambda_init=start, lambda_max=1.5).plan(TOKENS).weight.tolist()[0] == start
    make("positive_reweight", variant="stage", lambda_max=0.5)  # which has no use for either


def test_only_the_guided_variant_is_a_closed_loop():
    assert make("positive_reweight+aepo", variant="stage", **{"aepo.target": 0.5}).parts[0].controls is None


def test_a_training_without_steps():
    c = make("positive_reweight", variant="stage")
    c.observe(StepStats(entropy=1.0, step=0, total_steps=0))
    assert c.metrics()["positive_reweight/positive_weight"] == 0


def test_a_stage_begins_with_no_weight_and_ends_with_all():
    c = make("positive_reweight", variant="stage")
    assert c.plan(TOKENS).weight.tolist() == [0, 1, 1]
    assert weights(c, entropy=0.0, step=1, total_steps=1)[0] == 1


def of_a_variant(variant, **stats):
    make("positive_reweight", variant=variant).observe(StepStats(entropy=0.1, **stats))


WRONG = [
    ("variant must be one of stage, epoch, entropy_guided", lambda: make("positive_reweight", variant="cosine")),
    (r"lambda_init must lie in \[0, lambda_max\]", lambda: make("positive_reweight", lambda_init=-0.1, lambda_max=1.5)),
    (r"lambda_init must lie in \[0, lambda_max\]", lambda: make("positive_reweight", lambda_init=1.6, lambda_max=1.5)),
    ("both closed loops", lambda: make("positive_reweight+aepo", **{"aepo.target": 0.5})),
    ("total_steps", lambda: of_a_variant("stage")),
    ("epochs", lambda: of_a_variant("epoch")),
    ("needs StepStats", lambda: of_a_variant("epoch", epoch=1)),
    ("needs StepStats", lambda: of_a_variant("epoch", epochs=3)),
    ("variant 'epoch' needs 2 epochs or more", lambda: of_a_variant("epoch", epoch=1, epochs=1)),
]


@pytest.mark.parametrize(("message", "wrong"), WRONG)
def test_what_is_wrong_is_named(message, wrong):
    with pytest.raises(ValueError, match=message):
        wrong()
