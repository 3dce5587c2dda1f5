"""Page Plan, and the run beside its plan."""

import json
import re

import pytest
from streamlit.testing.v1 import AppTest

from entrostat.logs.runlog import RunLog
from entrostat_app.browser.headless import server
from entrostat_app.launch import RUNS
from entrostat_app.views.plan import against, next_commands
from entrostat_app.views.plan.asked import ask
from llmtrain.plan.gpu import GIB
from llmtrain.plan.headroom import headroom
from llmtrain.plan.published import PUBLISHED, ratio

LINE = {
    "entropy": 0.5,
    "grad_norm": 1.0,
    "response_length": 1024.0,
    "tokens_per_second_per_gpu": 1000.0,
    "time/rollout": 300.0,
    "time/verify": 20.0,
    "time/forward": 100.0,
    "time/backward": 150.0,
    "time/sync": 5.0,
    "time/step": 575.0,
    "memory/reserved_gib": 60.0,
}


def wrapper() -> None:
    from entrostat_app.views.plan import plan

    plan.page()


def open_page(**query) -> AppTest:
    app = AppTest.from_function(wrapper, default_timeout=30)
    for key, value in query.items():
        app.query_params[key.replace("__", ".")] = value
    app.run()
    assert not app.exception
    return app


def write(folder, config=None, **changes) -> None:
    log = RunLog(folder, config if config is not None else {}, seed=0)
    for step in range(3):
        log.log(step, LINE | changes | ({"time/step": 1e6} if step == 0 else {}))  # the first step warms up
    log.close()


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv(RUNS, str(tmp_path))
    return tmp_path


def test_hours_and_money_are_those_that_published_runs_took(root):
    app = open_page(plan__room="false")
    plan = ask("", "h100", 8, {}, room=False).plan
    taken = [plan.gpu_hours / ratio(run) for run in PUBLISHED]
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown["GPU-hours"] == f"{min(taken):,.0f}–{max(taken):,.0f}"
    assert shown["Hours"] == f"{min(taken) / 8:,.0f}–{max(taken) / 8:,.0f}"
    app.number_input(key="plan.price").set_value(4.0).run()
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown["Cost"] == f"${4 * min(taken):,.0f}–{4 * max(taken):,.0f}"


def test_room_is_left_free_in_memory(root):
    app = open_page(plan__room="false")
    free = re.compile(r"rollout ([\d.]+) GiB")
    assert free.search(app.info[0].value)[1] == "0.0"
    app.toggle(key="plan.room").set_value(True).run()
    plan = ask("", "h100", 8, {}, room=True).plan
    assert float(free.search(app.info[0].value)[1]) == pytest.approx(headroom(plan)["rollout"] / GIB, abs=0.05)


def test_a_recipe_brings_its_settings(root):
    app = open_page(plan__recipe="entropic/qwen3-8b", plan__gpu="h20", plan__gpus="64")
    assert not app.error
    code = "\n".join(block.value for block in app.code)
    assert "llmtrain plan --recipe entropic/qwen3-8b --gpu h20 --gpus 64" in code
    assert "--nodes 8" in code
    assert "controller: entropic" in code
    with pytest.raises(KeyError):
        app.selectbox(key="plan.model")


def test_a_budget_is_told_in_steps(root):
    app = open_page(plan__budget="100")
    plan = ask("", "h100", 8, {}, room=True).plan
    steps = re.search(r"enough for (\d+)–(\d+) of 200 steps", app.info[0].value)
    taken = sorted(int(100 * 200 * ratio(run) / plan.gpu_hours) for run in PUBLISHED)
    assert [int(steps[1]), int(steps[2])] == taken


def test_what_cannot_be_is_one_line_with_its_fix(root):
    app = open_page(plan__gpus="48")
    (error,) = app.error
    assert "48 ranks: use gpus=32 or colocated=false rollout_gpus=16" in error.value.replace("\\", "")
    app = open_page(plan__gpus="1")
    assert "offload_optimizer=true" in app.info[0].value.replace("\\", "")
    assert not app.error


def test_plan_against_measured(root):
    app = open_page(plan__name="mine")
    assert not app.dataframe
    assert any("Neither mine nor mine-smoke" in caption.value.replace("\\", "") for caption in app.caption)
    asked = ask("", "h100", 8, {}, room=True)
    settings = next_commands.settings_of(asked)
    write(root / "mine-smoke", settings | {"steps": 10, "save_every": 10, "out": "elsewhere"})
    app.run()
    table = app.dataframe[0].value.set_index("")
    assert not app.warning
    assert table["plan"]["a step (s)"] == asked.plan.seconds
    assert table["measured"]["a step (s)"] == 575
    assert table["measured"]["rollout (s)"] == 320
    assert table["measured"]["training (s)"] == 250
    assert table["measured"]["weight sync (s)"] == 5
    assert table["measured / plan"]["mean response (tokens)"] == 0.5
    assert table["plan"]["the whole run (GPU-hours)"] == asked.plan.gpu_hours
    assert table["measured"]["the whole run (GPU-hours)"] == pytest.approx(575 * 200 * 8 / 3600)
    write(root / "mine", settings | {"rollout": settings["rollout"] | {"n": 4}})
    app.run()
    assert len(app.dataframe) == 2
    assert "rollout.n is 4, planned 8" in app.warning[0].value.replace("\\", "")


@pytest.mark.parametrize(
    "text",
    [
        '{"step": 0, "time/step": 1.0}',
        json.dumps({"step": 0} | LINE | {"time/rollout": None}),
        json.dumps({"step": 0} | LINE | {"response_length": []}),
        json.dumps({"step": 0} | LINE | {"memory/reserved_gib": "much"}),
        "damaged\n{}",
    ],
)
def test_logs_of_others_are_said_in_one_line(root, text):
    write(root / "mine")
    (root / "mine" / "metrics.jsonl").write_text(text + "\n")
    app = open_page(plan__name="mine")
    (error,) = app.error
    assert error.value.replace("\\", "").startswith("mine/metrics.jsonl ")


def test_nothing_outside_the_folder_of_runs_is_read(root, monkeypatch):
    write(root / "mine")
    monkeypatch.setenv(RUNS, str(root / "runs"))
    assert against.measurements(root / "runs", "../mine") is None
    assert not open_page(plan__name="../mine").dataframe


@pytest.mark.slow
def test_the_run_comes_up_beside_its_plan_in_chromium(tab, tmp_path):
    with server(tmp_path) as address:
        tab.goto(f"{address}/plan?plan.live=true&plan.name=mine")
        tab.get_by_text("has finished a step in the folder of runs").wait_for()
        write(tmp_path / "mine")
        tab.get_by_text("medians of 3 steps").wait_for()
