"""Section Diagnosis of the page Runs: the words and settings of `llmtrain diagnose`."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from entrostat.logs.diagnosis import words
from entrostat.logs.diagnosis.advice import advise
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
    drawn = "\n".join(element.value for element in app.markdown)
    for section in (*words.sections(found), *map(words.told, advise(found))):
        for line in section.lines:
            assert plain(line) in drawn
    assert [tab.label for tab in app.tabs][:3] == ["TRL", "verl", "llmtrain"]
    pasted = [text for one in advise(found) for text in one.settings.values()]
    assert [code.value for code in app.code] == pasted
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
    found = run_diagnosis.facts(log, None)
    assert found.entropy.start == pytest.approx(0.7)
    assert found.entropy.collapse == 37
