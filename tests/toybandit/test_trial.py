"""Parameters refuse what they cannot take, and predicted curves are the nearest that do as claimed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toybandit.trial import nearest_rising
from toybandit.trials import TRIALS, Outcome, Parameter, trial

NUMBER = Parameter(key="x", label="X", default=1.0, low=0.0, high=2.0, step=0.5, help="A number.")
COUNT = Parameter(key="n", label="N", default=2, low=1, high=8, step=1, help="A count.")
CHOICE = Parameter(key="c", label="C", default="a", options=("a", "b"), help="A choice.")
SWITCH = Parameter(key="s", label="S", default=True, help="A switch.")


@pytest.mark.parametrize(
    ("parameter", "value", "taken"),
    [(NUMBER, 2, 2.0), (NUMBER, 0.5, 0.5), (COUNT, 3, 3), (CHOICE, "b", "b"), (SWITCH, False, False)],
)
def test_values_that_are_taken(parameter, value, taken):
    assert parameter.checked(value) == taken
    assert type(parameter.checked(value)) is type(parameter.default)


WRONG = {
    "x must be between 0 and 2, not 3": lambda: NUMBER.checked(3.0),
    "x must be between 0 and 2, not nan": lambda: NUMBER.checked(float("nan")),
    "x must be a number, not '1'": lambda: NUMBER.checked("1"),
    "x must be a number, not True": lambda: NUMBER.checked(True),
    "n must be a whole number, not 1.5": lambda: COUNT.checked(1.5),
    "n must be between 1 and 8, not 9": lambda: COUNT.checked(9),
    "c must be one of a, b, not 'd'": lambda: CHOICE.checked("d"),
    "s must be true or false, not 1": lambda: SWITCH.checked(1),
    "trial 'remainder' has no eta; it has arms": lambda: TRIALS["remainder"].run(eta=1.0),
    "trial 'windup' is registered twice": lambda: trial("windup")(lambda: None),
}


@pytest.mark.parametrize(("message", "wrong"), WRONG.items())
def test_what_is_wrong_is_named(message, wrong):
    with pytest.raises(ValueError, match=message):
        wrong()


def test_residual_and_verdict_follow_from_the_numbers():
    shared = {
        "x": np.arange(2.0),
        "x_title": "x",
        "y_title": "y",
        "predicted": np.ones(2),
        "measured": np.array([1.0, 3.0]),
    }
    found = Outcome(**shared, holds=False, because="it is 2 off.")
    np.testing.assert_array_equal(found.residual, [0.0, 2.0])
    assert found.verdict == "Fails here: it is 2 off."
    assert Outcome(**shared, holds=True, because="so.").verdict == "Holds here: so."


def test_nearest_rising_of_a_known_case():
    np.testing.assert_allclose(nearest_rising(np.array([1.0, 3.0, 2.0, 4.0, 0.0])), [1.0, 2.25, 2.25, 2.25, 2.25])


@pytest.mark.slow
@settings(derandomize=True, deadline=None)
@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=8),
    st.lists(st.floats(0, 3), min_size=8, max_size=8),
    st.floats(-5, 5),
)
def test_nearest_rising_is_the_nearest(values, steps, start):
    """No other rising numbers lie nearer, and rising ones are left alone."""
    y = np.array(values)
    fitted = nearest_rising(y)
    assert (np.diff(fitted) >= 0).all()
    other = start + np.cumsum(steps)[: len(y)]
    assert ((fitted - y) ** 2).sum() <= ((other - y) ** 2).sum() + 1e-9
    np.testing.assert_allclose(nearest_rising(np.sort(y)), np.sort(y))
