"""The picture: nothing is drawn before the prediction, and the answer is that of toybandit."""

import numpy as np
from streamlit.testing.v1 import AppTest

from entrostat_app.menu import SCRIPT
from entrostat_app.views.playground import side_by_side
from toybandit import picture
from toybandit.picture import HELD, PLAIN, TARGET


def test_the_panels_have_the_runs_and_before_them_the_target_alone():
    runs = side_by_side.both(TARGET)
    for entropy, passed in (side_by_side.panels({}, TARGET), side_by_side.panels(runs, TARGET)):
        drawn = [panel.frame.dropna(subset="value").groupby("series")["value"] for panel in (entropy, passed)]
        assert (drawn[0].get_group("target") == TARGET).all()
        if entropy.frame.isna().any(axis=None):
            assert [set(each.groups) for each in drawn] == [{"target"}, set()]
            continue
        for each, what in zip(drawn, ("entropy", "passed"), strict=True):
            for name in (PLAIN, HELD):
                np.testing.assert_array_equal(each.get_group(name), getattr(runs[name], what).mean(0))


def test_a_prediction_is_answered_and_the_slider_moves_the_answer():
    app = AppTest.from_file(str(SCRIPT), default_timeout=120).run()
    assert "Choose an answer" in app.info[0].value
    app.radio(key="picture-guess").set_value(PLAIN).run()
    assert app.warning[0].value == f"**Not as predicted.** {picture.verdict(side_by_side.both(TARGET))[1]}"
    assert f"**{HELD}**: last policy, reward 0.82" in [text.value for text in app.markdown]
    app.slider(key="picture.target").set_value(0.4).run()
    assert not app.exception
    assert app.warning[0].value == f"**Not as predicted.** {picture.verdict(side_by_side.both(0.4))[1]}"
