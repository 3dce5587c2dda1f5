"""Pass rates and draws by them: values by hand, frequencies against weights, and the state."""

import numpy as np
import pytest

from llmtrain.data.curriculum import Curriculum


def drawn_first(made: Curriculum, draws: int) -> np.ndarray:
    """Return the number of batches whose only question each is, (Q,)."""
    places = [made.take(number, 1, seed=3)[0] for number in range(draws)]
    found = [int(made.starts[source]) + index for source, index in places]
    return np.bincount(found, minlength=len(made.pass_rates))


def test_rates_and_weights_by_hand():
    """rate ½, from ½: all wrong gives ¼, again ⅛; all right ¾. Weights 4p(1 − p) + .1."""
    made = Curriculum([3], rate=0.5, floor=0.1)
    made.drawn = np.array([0, 2])
    made.learn([0.0, 1.0])
    made.drawn = np.array([0])
    made.learn([0.0])
    assert made.pass_rates.tolist() == [0.125, 0.5, 0.75]
    assert made.weights.tolist() == pytest.approx([0.5375, 1.1, 0.85])
    assert made.metrics() == {"curriculum/asked": 2 / 3, "curriculum/pass_rate": 0.4375, "curriculum/between": 1.0}


def test_questions_are_drawn_by_weight():
    made = Curriculum([2, 2], rate=1.0, floor=0.25)
    made.pass_rates[:] = [0.0, 0.5, 1.0, 0.9]
    draws = 20_000
    wanted = made.weights / made.weights.sum()
    assert (np.abs(drawn_first(made, draws) / draws - wanted) < 4 * np.sqrt(wanted * (1 - wanted) / draws)).all()


def test_the_second_of_a_batch_is_drawn_by_weight_among_the_others():
    """With weights 1.25, .25 and .25 the first question is among two of three in 1 − 2·(1/7)·(1/6) of the batches."""
    made = Curriculum([3], rate=1.0, floor=0.25)
    made.pass_rates[:] = [0.5, 0.0, 1.0]
    within = np.mean([(0, 0) in made.take(number, 2, seed=0) for number in range(20_000)])
    assert within == pytest.approx(1 - 2 * (1 / 7) * (1 / 6), abs=0.006)


def test_a_batch_has_no_question_twice_and_all_sources():
    made = Curriculum([2, 1, 3], rate=0.5, floor=0.1)
    assert sorted(made.take(0, 6, seed=1)) == [(0, 0), (0, 1), (1, 0), (2, 0), (2, 1), (2, 2)]
    assert made.take(0, 4, seed=1) == made.take(0, 4, seed=1)
    assert made.take(0, 4, seed=1) != made.take(1, 4, seed=1)
    with pytest.raises(ValueError, match=r"7 different questions .* there are 6: lower rollout\.prompts"):
        made.take(0, 7, seed=1)


def test_the_state_restores_the_draws():
    first, second = (Curriculum([5, 4], rate=0.3, floor=0.1) for _ in range(2))
    for number in range(20):
        first.take(number, 3, seed=0)
        first.learn([0.0, 1.0, 0.5])
    second.load_state_dict(first.state_dict())
    assert second.metrics() == first.metrics()
    assert second.take(20, 3, seed=0) == first.take(20, 3, seed=0)
    with pytest.raises(ValueError, match="pass rates of 9 questions, and the run has 8: resume with the same data"):
        Curriculum([8], rate=0.3, floor=0.1).load_state_dict(first.state_dict())
