import pytest
import torch

from entrostat import Tokens, make


def tokens(n: int = 1000) -> Tokens:
    a = torch.ones(n, dtype=torch.float64)
    a[::2] = -1.0
    return Tokens(logp=-a.abs(), old_logp=-a.abs(), advantage=a)


def test_the_number_of_tokens_and_their_sign():
    t = tokens()
    plan = make("random_positive_clip", k=0.0417).plan(t)
    dropped = plan.weight == 0
    assert dropped.sum() == 41
    assert (t.advantage[dropped] > 0).all()
    assert plan.info["random_positive_clip/dropped"].item() == 0.041
    assert make("random_positive_clip").plan(t).weight.eq(0).sum() == 1  # max(int(.2), 1)


def test_no_more_than_there_are():
    assert make("random_positive_clip", k=1.0).plan(tokens(10)).weight.tolist() == [1, 0] * 5
    a = torch.tensor([0.0, 0.5, -1.0])
    t = Tokens(logp=-a.abs(), old_logp=-a.abs(), advantage=a)
    assert make("random_positive_clip", k=1.0).plan(t).weight.tolist() == [1, 0, 1]


def test_every_positive_token_is_as_likely():
    """800 draws of 50 among 500: mean 80 and standard deviation 8.5 for each token."""
    t, controller = tokens(), make("random_positive_clip", k=0.05)
    counts = sum((controller.plan(t, seed=1, step=i).weight == 0).double() for i in range(800))
    assert counts[::2].max() == 0
    assert counts[1::2].sum() == 800 * 50
    assert counts[1::2].min() > 80 - 5 * 8.5
    assert counts[1::2].max() < 80 + 5 * 8.5
    assert 6.5 < counts[1::2].std() < 10.5


def test_the_draw_is_keyed_by_seed_and_step():
    t, controller = tokens(), make("random_positive_clip", k=0.05)
    again = controller.plan(t, seed=3, step=4).weight
    assert torch.equal(controller.plan(t, seed=3, step=4).weight, again)
    assert not torch.equal(controller.plan(t, seed=3, step=5).weight, again)
    assert not torch.equal(controller.plan(t, seed=4, step=4).weight, again)


def test_bad_share():
    with pytest.raises(ValueError, match=r"k must lie in \[0, 1\]"):
        make("random_positive_clip", k=1.5)


@pytest.mark.parametrize(
    ("spec", "settings"), [("random_positive_clip", {}), ("clip_cov", {"omega_low": -9.0, "omega_high": 9.0})]
)
def test_each_run_may_have_its_own_step(spec, settings):
    one, steps = tokens().advantage, torch.tensor([3, 8])
    t = Tokens(logp=-one.abs().expand(2, -1), old_logp=-one.abs().expand(2, -1), advantage=one.expand(2, -1))
    controller = make(spec, k=0.1, **settings)
    together = controller.plan(t, seed=5, step=steps).weight
    for run, step in enumerate(steps.tolist()):
        assert torch.equal(together[run], controller.plan(tokens(), seed=5, step=step).weight)
    assert not torch.equal(*together)
