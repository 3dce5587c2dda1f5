"""Controls: titles, the widget for each kind of default, steps, and query parameters."""

import re

import pytest
from streamlit.testing.v1 import AppTest

from entrostat_app.shared.controls import Control, coarseness, query


def test_title_has_symbol_and_unit():
    assert Control(key="h", label="Target", symbol="H*", unit="nats", default=0.5, help="").title == "Target H* (nats)"
    assert Control(key="h", label="Seed", default=0, help="").title == "Seed"


@pytest.mark.parametrize(("value", "step"), [(7, 1), (0.0, 0.1), (0.01, 0.001), (0.25, 0.01), (5.0, 0.1), (-30.0, 1.0)])
def test_steps_follow_the_size_of_a_number(value, step):
    assert coarseness(value) == pytest.approx(step, rel=1e-12)


def test_query_as_streamlit_writes_it():
    values = {"lr": 0.5, "controller": ("ppo", "steer"), "auto": True, "n": 3}
    assert query(values) == {"lr": "0.5", "controller": ["ppo", "steer"], "auto": "true", "n": "3"}


def shown() -> None:
    import streamlit as st

    from entrostat_app.shared.controls import Control, restore

    found = {
        "slider": Control(key="slider", label="a", default=1.0, low=0.0, high=2.0, step=0.5, help="").draw(),
        "whole": Control(key="whole", label="b", default=3, help="").draw(),
        "real": Control(key="real", label="h", default=0.5, help="").draw(),
        "switch": Control(key="switch", label="c", default=False, help="").draw(),
        "choice": Control(key="choice", label="d", default="y", options=("x", "y"), help="").draw(),
        "size": Control(key="size", label="j", default="4", options=("4", "all"), ordered=True, help="").draw(),
        "several": Control(key="several", label="e", default=(), options=("x", "y"), help="").draw(),
        "infinite": Control(key="infinite", label="f", default=float("inf"), help="").draw(),
        "nothing": Control(key="nothing", label="g", default=None, help="").draw(),
    }
    st.button("back", on_click=restore, args=({"whole": 5, "several": ("x",)},))
    st.json({key: repr(value) for key, value in found.items()})


@pytest.mark.parametrize("text", ["inf", "-inf", "1e400", "nan"])
@pytest.mark.parametrize(("key", "default"), [("slider", "1.0"), ("whole", "3"), ("real", "0.5")])
def test_a_number_that_is_none_in_the_url_is_the_default(key, default, text):
    import json

    app = AppTest.from_function(shown)
    app.query_params |= {key: text, "choice": "x"}
    app.run()
    assert not app.exception
    found = json.loads(app.json[0].value)
    assert (found[key], found["choice"]) == (default, "'x'")
    assert "x" in app.query_params["choice"]
    assert key not in app.query_params
    app.run()
    assert not app.exception


def test_defaults_links_and_the_way_back():
    import json

    app = AppTest.from_function(shown).run()
    assert not app.exception
    assert json.loads(app.json[0].value) == {
        "slider": "1.0", "whole": "3", "real": "0.5", "switch": "False", "choice": "'y'", "size": "'4'",
        "several": "[]", "infinite": "inf", "nothing": "None",
    }  # fmt: skip
    app = AppTest.from_function(shown)
    for key, text in {
        "slider": "1.5",
        "whole": "4",
        "switch": "true",
        "choice": "x",
        "size": "all",
        "nothing": "0.25",
    }.items():
        app.query_params[key] = text
    app.query_params["several"] = ["y", "x"]
    app.run()
    found = json.loads(app.json[0].value)
    assert found["slider"] == "1.5"
    assert found["whole"] == "4"
    assert found["switch"] == "True"
    assert found["choice"] == "'x'"
    assert found["size"] == "'all'"
    assert found["several"] == "['y', 'x']"
    assert found["nothing"] == "0.25"
    app.button[0].click().run()
    found = json.loads(app.json[0].value)
    assert (found["slider"], found["whole"], found["several"], found["nothing"]) == ("1.0", "5", "['x']", "None")


@pytest.mark.parametrize(
    ("key", "text", "names"),
    [
        ("choice", "z", ["d: .* z, .* y"]),
        ("size", "5", ["j: .* 5, .* 4"]),
        ("several", ["x", "own.yaml", "q"], ["e: .* own.yaml, q, .* x"]),
        ("slider", "7", ["a: .* 7, .* 1.0"]),
        ("slider", "fast", ["a: .* fast, .* 1.0"]),
        ("choice", "z" * 5000, ["d: .* z{60}, .* y"]),
        ("choice", "x", []),
        ("slider", "0.5", []),
    ],
)
def test_what_a_link_asks_for_and_is_not_there_is_said(key, text, names):
    app = AppTest.from_function(shown)
    app.query_params[key] = text
    app.run()
    assert not app.exception
    for one, name in zip(app.info, names, strict=True):
        assert re.fullmatch(name, one.value.replace("\\", ""))


def named() -> None:
    import streamlit as st

    from entrostat_app.shared.controls import Named, restore

    words = {"a-1": "The first.", "b-2": "The second.", "c-3": "The second."}
    one = Named(key="one", label="One", default="a-1", options=tuple(words), words=words, help="").draw()
    several = Named(key="several", label="Several", default=(), options=tuple(words), words=words, help="").draw()
    st.button("back", on_click=restore, args=({"one": "b-2"},))
    st.json({"one": one, "several": several})


def test_a_link_keeps_the_names_of_options_that_are_shown_in_words():
    import json

    def found() -> dict:
        return json.loads(app.json[0].value)

    app = AppTest.from_function(named)
    app.query_params |= {"one": "c-3", "several": ["a-1", "unknown"]}
    app.run()
    assert not app.exception
    assert found() == {"one": "c-3", "several": ["a-1"]}
    assert app.selectbox[0].options == ["The first.", "The second. (b-2)", "The second. (c-3)"]
    assert dict(app.query_params) == {"one": "c-3", "several": "a-1"}
    app.selectbox[0].select("The first.").run()
    assert "one" not in app.query_params  # it is the default
    app.query_params["one"] = "b-2"  # another link on the same page
    app.run()
    assert found()["one"] == "b-2"
    app.query_params.clear()
    app.run()
    assert found() == {"one": "a-1", "several": []}
    app.button[0].click().run()
    assert found()["one"] == "b-2"
    assert app.query_params["one"] in ("b-2", ["b-2"])
