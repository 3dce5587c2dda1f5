"""What an environment takes, and what it makes of it."""

import numpy as np
import pytest

from toybandit import Config, simulate
from toybandit.environments import ENVIRONMENTS, MOST_LOGITS, Environment


def test_lists_become_tuples():
    given, tuples = {"success": [0.2, 0.8], "lr": [0.1, 0.2]}, {"success": ((0.2, 0.8),), "lr": (0.1, 0.2)}
    one, other = (Environment(arms=2, right_arms=1, **numbers) for numbers in (given, tuples))
    assert (one.success, one.lr) == (((0.2, 0.8),), (0.1, 0.2))
    assert hash(one) == hash(other)


def test_the_largest_there_are():
    assert Environment(states=2**20).rows * 16 == MOST_LOGITS
    assert Environment(states=4096, coupling=0.1).rows == 4096
    assert Environment(length=40).rows == 64 * 40  # a chain, whose rows do not double


def test_named_environments_are_what_they_are_said_to_be():
    """Signal, passes and states as the table's docstring has them."""
    start = {name: simulate(Config(env=name, rollouts=1), range(8)) for name in ENVIRONMENTS}
    paid = {name: sorted(set(run.success.ravel())) for name, run in start.items()}
    assert paid["pure"] == [0.5]
    assert paid["det"] == paid["features"] == [0.0, 1.0]
    assert paid["noisy"] == paid["on"] == paid["coupled"] == paid["episodes"] == [0.3, 0.6]
    assert {name for name, env in ENVIRONMENTS.items() if env.passes == 1} == {"exact", "on", "features"}
    assert ENVIRONMENTS["exact"].enumerated
    assert ENVIRONMENTS["coupled"].coupling > 0
    assert ENVIRONMENTS["episodes"].length == 4

    tempting, rare, *others = start["trap"].success[0].T
    assert (tempting == 0.5).all()
    assert (rare == 1.0).all()
    assert np.unique(others).tolist() == [0.3]
    policies = simulate(Config(env="trap", rollouts=1), range(64), keep_policies=True).policies
    assert policies is not None
    average = policies[:, 0].mean((0, 1))
    assert average[1] == pytest.approx(0.0025, rel=0.1)
    assert average.argmax() == 0


@pytest.mark.long
def test_entropy_leads_out_of_the_trap_and_larger_groups_do_not():
    """Share of states in which the rare arm is likelier than the tempting one, after as many rollouts."""

    def escaped(**settings):
        p = simulate(Config(env="trap", **settings), range(4)).probabilities
        return (p[..., 1] > p[..., 0]).mean()

    assert escaped() == escaped(group=64) == escaped(rollouts=600) == 0
    held = [escaped(controller="thermostat", target=target) for target in (0.2, 0.8, 1.4)]
    assert 0.1 < held[0] < held[1] - 0.1 < held[2] - 0.2


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"states": 2**20 + 1}, "states, arms, length and branching make over 16777216 logits"),
        ({"states": 2**14 + 1, "arms": 2**10}, "states, arms, length and branching make over 16777216 logits"),
        ({"states": 4097, "coupling": 0.1}, "coupling of 4097 states takes over 16777216 numbers"),
        ({"length": 2, "group": None}, "length must be 1 if every outcome is enumerated; got 2"),
        ({"lr": ()}, "lr must be a number, or one for each run; got none"),
        ({"arms": 3, "right_arms": 4}, "right_arms must be at most the 3 arms; got 4"),
    ],
)
def test_what_does_not_fit(numbers, message):
    with pytest.raises(ValueError, match=message):
        Environment(**numbers)
