"""Section Diagnosis of the page Runs: the words and settings of `llmtrain diagnose`."""

import json

import numpy as np
import pytest
import vl_convert
from streamlit.testing.v1 import AppTest

from entrostat.logs.diagnosis import words
from entrostat.logs.diagnosis.advice import advise
from entrostat.logs.diagnosis.events import look
from entrostat.logs.diagnosis.facts import measure
from entrostat.logs.runlog import RunLog, read_metrics
from entrostat_app.launch import RUNS
from entrostat_app.shared.plain_text import plain
from entrostat_app.views.runs import run_diagnosis
from entrostat_app.views.runs.run_log import Log, Series

CONFIG = {"steps": 60, "controller": "grpo"}


def wrapper() -> None:
    from entrostat_app.views.runs import runs

    runs.page()


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Return a folder with a run that collapses at step 37."""
    log = RunLog(tmp_path / "fallen", CONFIG, 0)
    for step in range(60):
        log.log(step, {"entropy": 0.6 if step < 37 else 0.1, "reward": 0.5 + step / 600, "clip/high": 0.0})
    log.close()
    monkeypatch.setenv(RUNS, str(tmp_path))
    return tmp_path


def opened(**query) -> AppTest:
    app = AppTest.from_function(wrapper, default_timeout=30)
    for key, value in {"runs.show": "Diagnosis", **query}.items():
        app.query_params[key] = value
    app.run()
    assert not app.exception
    return app


def test_it_says_what_the_command_says(root):
    app = opened()
    found = measure(read_metrics(root / "fallen"), CONFIG)
    assert found.entropy.collapse == 37
    drawn = "\n".join(element.value for element in (*app.markdown, *app.header, *app.caption))
    for section in (*words.sections(found), *map(words.told, advise(found))):
        for line in section.lines:
            assert plain(line) in drawn
    assert [tab.label for tab in app.tabs][:3] == ["TRL", "verl", "llmtrain"]
    pasted = [text for one in advise(found) for text in one.settings.values()]
    assert [code.value for code in app.code] == pasted
    assert app.header[0].value == plain("Entropy fell from 0.6 nats to 0.1 by step 37.")
    titles = [expander.label for expander in app.expander]
    assert [title for title in titles if title.startswith("Do not expect a wider clip")]


def test_a_target_changes_the_advice(root):
    app = opened(**{"runs.target": "0.1"})
    assert "Leave the controller as it is" in "\n".join(expander.label for expander in app.expander)
    assert not app.code
    app.text_input(key="runs.target").set_value("high").run()
    assert not app.exception
    assert app.error[0].value == plain("the target is a number in nats, not 'high'")


def test_where_no_rule_applies(root):
    log = RunLog(root / "short", {"steps": 2}, 0)
    log.log(0, {"entropy": 0.5})
    log.close()
    app = opened(runs="short")
    assert words.NO_RULE in [caption.value for caption in app.caption]


def test_seeds_count_with_their_mean():
    steps = np.arange(60.0)
    entropy = np.where(steps < 37, 0.6, 0.1)
    log = Log("two", {}, {"entropy": Series(steps, np.stack([entropy, entropy + 0.2]))}, "done")
    found = measure(run_diagnosis.metrics(log, {}))
    assert found.entropy.start == pytest.approx(0.7)
    assert found.entropy.collapse == 37


def test_metrics_that_end_together_are_told_where_others_go_on():
    steps, half = np.arange(60.0), np.arange(30.0)
    series = {"entropy": Series(half, np.full((1, 30), 0.5)), "reward": Series(half, np.full((1, 30), 0.4))}
    log = Log("ends", {}, {**series, "time/step": Series(steps, np.ones((1, 60)))}, "done")
    happened = measure(run_diagnosis.metrics(log, {})).happened
    assert happened.ended == {"entropy": 30, "reward": 30}
    log = Log("done", {}, {**series, "time/step": Series(half, np.ones((1, 30)))}, "done")
    assert measure(run_diagnosis.metrics(log, {})).happened.ended == {}


@pytest.mark.parametrize(("name", "index"), [("actor/entropy", 1), ("train/entropy", 0)])
def test_a_log_opens_with_its_verdict_and_the_tab_of_its_trainer(root, name, index):
    lines = [f'{{"step": {s}, "data": {{"{name}": {0.9 if s < 20 else 0.1}, "reward": {s / 60}}}}}' for s in range(60)]
    (root / "theirs.jsonl").write_text("\n".join(lines))
    app = opened(runs="theirs.jsonl")
    assert app.header[0].value == plain("Entropy fell from 0.9 nats to 0.1 by step 20.")
    assert {tabs.default_tab_index for tabs in tab_containers(app.main)} == {index}


def tab_containers(block):
    """Yield the settings of all rows of tabs below a block of the page."""
    for child in getattr(block, "children", {}).values():
        proto = getattr(child, "proto", None)
        if proto is not None and proto.DESCRIPTOR.name == "Block" and proto.HasField("tab_container"):
            yield proto.tab_container
        yield from tab_containers(child)


def test_the_picture_marks_the_events():
    lines = [{"step": s, "entropy": 0.9 if s < 20 else 0.01, "reward": s / 60} for s in range(60)]
    drawn = run_diagnosis.picture(lines, look(lines))
    assert drawn.frame["word"].dropna().tolist() == ["fell 20"]
    values = json.loads(drawn.frame.to_json(orient="records"))
    svg = vl_convert.vegalite_to_svg({**drawn.spec, "data": {"name": "all"}, "datasets": {"all": values}})
    assert "fell 20" in svg
    assert "entropy (nats)" in svg
    assert run_diagnosis.picture([{"step": 0, "loss": 1.0}], look([])) is None


def test_a_column_of_another_name_is_asked_for(root):
    lines = [f'{{"step": {s}, "mine/entropy_of_policy": {0.9 if s < 20 else 0.1}, "reward": 0.5}}' for s in range(60)]
    (root / "mine.jsonl").write_text("\n".join(lines))
    app = opened(runs="mine.jsonl")
    asked = app.selectbox(key="runs.is_entropy")
    assert asked.options == ["mine/entropy_of_policy"]
    assert "Entropy fell" not in app.header[0].value
    asked.set_value("mine/entropy_of_policy").run()
    assert app.header[0].value.startswith("Entropy fell from 0.9 nats")
