"""Page Probes, on runs whose answers are known."""

import gzip
import shlex

import pytest
from probed_runs import write
from streamlit.testing.v1 import AppTest

from entrostat.logs.probe_log import FILE
from entrostat.logs.runlog import RunLog
from entrostat_app.launch import RUNS
from entrostat_app.shared import tokens_html
from entrostat_app.views.probes import probes as view
from llmtrain.settings.presets import read_config

EVIL = "<img src=x onerror=alert(1)>"


def wrapper() -> None:
    from entrostat_app.views.probes import probes

    probes.page()


@pytest.fixture
def root(tmp_path, monkeypatch):
    write(tmp_path, evil=EVIL)
    monkeypatch.setenv(RUNS, str(tmp_path))
    return tmp_path


def open_page(**query) -> AppTest:
    app = AppTest.from_function(wrapper, default_timeout=30)
    for key, value in query.items():
        app.query_params[key.replace("__", ".")] = value
    app.run()
    assert not app.exception
    return app


def html(app) -> list[str]:
    return [element.proto.body for element in app.get("html")]


def test_without_probes_it_says_how_to_make_them(tmp_path, monkeypatch):
    monkeypatch.setenv(RUNS, str(tmp_path))
    app = open_page()
    assert [code.value for code in app.code] == [view.HOW_TO, str(tmp_path)]
    for line in view.HOW_TO.splitlines():
        assert read_config(shlex.split(line)[2:], "x").log.probes == 8


def test_answers_are_aligned_where_they_part(root):
    app = open_page()
    assert [app.selectbox(key=key).value for key in ("probes.a", "probes.b")] == ["a", "b"]
    assert app.slider(key="probes.step").value == 20
    one, other = (text for text in html(app) if "Answer of" in text)
    for text, before, after in ((one, "1", "+"), (other, "1", "-")):
        assert text.index(f">{before}<") < text.index(tokens_html.MARK) < text.index(f">{after}<")
    assert any("part at token 2" in caption.value for caption in app.caption)
    assert EVIL not in "".join(html(app))
    rows = app.dataframe[0].value
    assert rows["parts at token"].isna().tolist() == [False, False, False, False]  # run a has one more token
    assert rows["A goes on with"].tolist()[0] == "+"


def test_the_slider_shows_which_branch_died(root):
    app = open_page(probes__step="10")
    said = app.info[0].value
    assert r"branch A in run A, “2”: taken by 1 of 2 answers at step 10" in said.replace("\\", "")
    assert "branch A in run B, “2”: died: last taken at step 0." in said.replace("\\", "")
    assert "branch B in run A, “3”: never taken." in said.replace("\\", "")
    app.slider(key="probes.step").set_value(20).run()
    assert "branch A in run A, “+”: taken by 1 of 2 answers at step 20" in app.info[0].value.replace("\\", "")


def test_two_steps_of_one_run(root):
    app = open_page(probes__a="b", probes__b="b")
    assert app.selectbox(key="probes.against").value == "the first"
    assert "branch B, “+”: died: last taken at step 10." in app.info[0].value.replace("\\", "")
    app.selectbox(key="probes.against").set_value("the same").run()
    assert "The two answers are the same: 4 tokens." in app.info[0].value
    assert "this answer" in app.info[1].value


@pytest.mark.parametrize("shade", view.SHADES)
def test_both_answers_have_one_scale(root, shade):
    app = open_page(probes__colour=shade, probes__answer="2")
    scale = tokens_html.SCALES[shade]
    assert any(scale.title in text for text in html(app))
    shared = [text for text in html(app) if "Answer of" in text]
    assert shared[0].count("span") == shared[1].count("span") + 2  # the one more token
    strong = {"entropy": "0.1", "weight": "0", "advantage": "-1"}[shade]
    label = tokens_html.HOVER[scale.key]
    assert all(f"{label} {strong}" in text for text in shared)


def test_other_questions_are_not_compared(root):
    path = root / "b" / FILE
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).splitlines()[0].replace(b"make", b"count")))
    app = open_page(probes__a="a", probes__b="b")
    (warning,) = app.warning
    assert "different questions" in warning.value


def test_damage_is_said_in_one_line(root):
    (root / "a" / FILE).write_bytes(b"damaged")
    app = open_page()
    assert FILE in app.error[0].value.replace("\\", "")


@pytest.mark.parametrize(("at", "start"), [(5, 1), (500, 351), (990, 401)])
def test_of_long_answers_the_parting_is_drawn(tmp_path, monkeypatch, at, start):
    monkeypatch.setenv(RUNS, str(tmp_path))
    for name, token in (("a", "x"), ("b", "y")):
        tokens = [str(i) for i in range(1000)]
        tokens[at] = token
        log = RunLog(tmp_path / name, {}, seed=0)
        log.log(0, {"entropy": 1.0})
        numbers = {"entropy": [0.1] * 1000}
        log.probes(0, [{"probe": 0, "sample": 0, "prompt": "count", "response": "", "tokens": tokens, **numbers}])
        log.close()
    app = open_page()
    one = next(text for text in html(app) if "Answer of A" in text)
    assert one.index(tokens_html.MARK) < one.index(">x<")
    assert one.count("<span") == view.DRAWN
    assert any(f"Tokens {start} to {start + 599:,} are drawn, of up to 1,000." in c.value for c in app.caption)
