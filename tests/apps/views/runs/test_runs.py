"""Page Runs, on the logs of a simulator and of a trainer."""

import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from entrostat.logs.runlog import RunLog, target_of
from entrostat_app.launch import RUNS
from entrostat_app.views.runs import runs as view
from entrostat_app.views.runs import runs_parts as parts

EVIL = "<img src=x onerror=alert(1)>"


def wrapper() -> None:
    from entrostat_app.views.runs import runs

    runs.page()


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Return a folder with two seeds of a trainer, one with numbers per token, and a run without any line."""
    rng = np.random.default_rng(0)
    for seed in range(2):
        log = RunLog(tmp_path / "runs" / f"llm/seed-{seed}", {"seed": seed, "steps": 40, "target_entropy": 0.4}, seed)
        for step in range(40):
            h = 1.2 * np.exp(-step / 15) + 0.02 * rng.random()
            times = {"time/step": 2.0, "tokens_per_second": 100.0}
            log.log(step, {"entropy": h, "reward": 0.8 - 0.2 * np.exp(h), "clip/high": 0.1, **times})
            numbers = {} if seed else {"entropy": [h, 0.1], "weight": [0.0, 1.0], "entropy_change": [-h, None]}
            log.sample(step, prompt="2+2", response=f"{EVIL}{step}", reward=1.0, tokens=[EVIL, str(step)], **numbers)
        log.close()
    RunLog(tmp_path / "runs" / "short", {"steps": 5}, 0).close()
    monkeypatch.setenv(RUNS, str(tmp_path / "runs"))
    return tmp_path / "runs"


def open_page(**query) -> AppTest:
    app = AppTest.from_function(wrapper, default_timeout=30)
    for key, value in query.items():
        app.query_params[key.replace("__", ".")] = value
    app.run()
    assert not app.exception
    return app


def texts(app) -> str:
    groups = (app.info, app.warning, app.error, app.caption, app.header)
    return "\n".join(element.value for group in groups for element in group)


def test_without_a_run_it_says_how_to_make_one(tmp_path, monkeypatch):
    for folder in (tmp_path, tmp_path / "nowhere"):
        monkeypatch.setenv(RUNS, str(folder))
        app = open_page()
        assert [code.value for code in app.code] == [view.HOW_TO, str(folder)]
        assert app.code[0].value.startswith(
            "toybandit run --env noisy --controller entropic --target 0.6 --out runs/first"
        )


def test_the_commands_that_make_a_run_are_understood():
    import shlex

    from llmtrain.settings.presets import read_config
    from toybandit.run import RunFlags, parse_flags

    first, second = view.HOW_TO.replace("\\\n", " ").splitlines()
    assert parse_flags(RunFlags, shlex.split(first)[2:], prog="x", description="x").config().target == 0.6
    assert read_config(shlex.split(second)[2:], "x").controller == "adaptive_entropy"


@pytest.mark.parametrize("section", view.SECTIONS)
def test_every_section_draws(root, section):
    app = open_page(runs__show=section)
    assert sorted(app.multiselect(key="runs").value) == ["llm/seed-0", "llm/seed-1"]
    assert not app.error


def test_seeds_are_joined_and_parted(root):
    app = open_page()
    assert "Bands range" in app.info[0].value
    app.toggle(key="runs.bands").set_value(False).run()
    assert "Bands range" not in app.info[0].value
    assert "seed\\-1" in app.info[0].value


def test_smoothing_moves_no_word(root):
    app = open_page()
    app.toggle(key="runs.bands").set_value(False).run()
    first = app.info[0].value
    assert "highest in seed" in first
    app.slider(key="runs.smooth").set_value(0.98).run()
    assert app.info[0].value == first


def test_pass_at_the_largest_k_is_shown_by_default(tmp_path, monkeypatch):
    log = RunLog(tmp_path / "runs" / "a", {"steps": 2}, 0)
    log.log(0, {"entropy": 1.0, "reward": 0.5, "eval/pass@8": 0.5, "eval/pass@2": 0.5, "eval/pass@16": 0.5})
    log.close()
    monkeypatch.setenv(RUNS, str(tmp_path / "runs"))
    assert open_page().multiselect(key="runs.metrics").value == ["entropy", "reward", "eval/pass@16"]


def test_the_link_holds_the_state(root):
    app = open_page(runs=["llm/seed-1"], runs__metrics=["reward", "clip/high"], runs__smooth="0.2", runs__x="tokens")
    assert app.multiselect(key="runs").value == ["llm/seed-1"]
    assert app.multiselect(key="runs.metrics").value == ["reward", "clip/high"]
    assert app.slider(key="runs.smooth").value == 0.2
    assert app.selectbox(key="runs.x").value == "tokens"
    assert not app.error


def test_a_link_names_the_runs_that_nobody_chose(root):
    app = open_page()
    chosen = app.multiselect(key="runs").value
    assert app.query_params["runs"] == chosen == ["llm/seed-1", "llm/seed-0"]
    app.multiselect(key="runs").set_value([]).run()
    assert app.multiselect(key="runs").value == []


def test_names_that_lead_elsewhere_are_refused_in_one_line_each(root):
    app = open_page(runs=["../secret", "/etc/passwd", "llm", "llm/seed-1"])
    assert len(app.error) == 3
    assert all("\n" not in error.value for error in app.error)
    assert app.multiselect(key="runs").value == ["llm/seed-1"]


@pytest.mark.slow
def test_a_run_without_a_line_is_no_failure(root):
    for section in view.SECTIONS:
        app = open_page(runs=["short"], runs__show=section)
        assert len(app.error) == (section == "Law")
    assert "has not logged both" in open_page(runs=["short"], runs__show="Law").error[0].value


def test_no_metric_may_be_chosen(root):
    app = open_page()
    app.multiselect(key="runs.metrics").set_value([]).run()
    assert app.info[0].value == "Choose a metric in the sidebar."


def test_runs_left_out_are_counted(root, monkeypatch):
    monkeypatch.setattr(view.run_folder, "MOST_RUNS", 2)
    app = open_page(runs=["llm/seed-0", "short"])
    assert "The newest 2 of 3 runs can be chosen. Left out: 1." in texts(app)
    assert app.multiselect(key="runs").options == ["seed-0", "seed-1"]
    assert "older than the 2 runs" in app.error[0].value


def test_files_that_are_not_ours_to_read_are_named(root, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied", "/secret/samples.jsonl")

    monkeypatch.setattr(view.run_log, "sample_steps", refuse)
    app = open_page(runs__show="Responses")
    assert app.error[0].value == "samples.jsonl cannot be read\\: Permission denied"
    monkeypatch.setattr(view.run_log, "read", refuse)
    assert "secret" not in texts(open_page())
    monkeypatch.setattr(view.run_folder.os, "scandir", refuse)
    assert "the folder of runs cannot be read" in open_page().error[0].value


def test_a_short_seed_and_thinned_lines_are_told(root, monkeypatch):
    monkeypatch.setattr(view.run_curves, "POINTS", 10)
    path = root / "llm/seed-1/metrics.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:20]))
    told = texts(open_page())
    assert "is drawn up to step 19, where llm/seed\\-1 ends." in told
    assert "thinned to 10 points" in told


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, True, "high"])
def test_a_target_that_nothing_can_hold_is_none(value):
    assert target_of({"target_entropy": value, "target": 0.5}) == 0.5


def test_no_run_may_be_chosen(root):
    app = open_page()
    app.multiselect(key="runs").set_value([]).run()
    assert not app.exception
    assert "Choose a run" in app.info[0].value


def test_a_run_that_cannot_be_read_is_named_and_others_are_shown(root):
    (root / "llm/seed-0/config.yaml").write_text("!!python/object:os.system {}")
    app = open_page(runs=["llm/seed-0", "llm/seed-1"])
    assert "llm/seed\\-0/config.yaml is not plain YAML" in app.warning[0].value
    assert app.info[0].value.startswith("Entropy goes from")


def test_the_comparison(root):
    app = open_page(runs=["llm/seed-0", "llm/seed-1"], runs__show="Compare")
    ends, differences = (element.value for element in app.dataframe)
    assert ends["run"].tolist() == ["seed-0", "seed-1"]
    lines = [json.loads(line) for line in (root / "llm/seed-0/metrics.jsonl").read_text().splitlines()]
    assert ends["entropy"][0] == lines[-1]["entropy"]
    assert ends["entropy, last third"][0] == pytest.approx(np.mean([line["entropy"] for line in lines[-13:]]))
    assert differences["setting"].tolist() == ["seed"]


def test_the_law(root):
    app = open_page(runs=["llm/seed-0"], runs__show="Law", runs__share="0.5")
    assert "explains 100% of the variance" in app.info[0].value
    assert app.dataframe[0].value["all points"][0].startswith("0.200 [")
    assert "first 20" in app.dataframe[0].value
    app.slider(key="runs.share").set_value(0.05).run()
    assert "too few points" in texts(app)


def test_responses_step_by_step(root):
    app = open_page(runs=["llm/seed-0"], runs__show="Responses", runs__step="7")
    assert app.header[0].value == "Step 7, reward 1, 2 tokens"
    html = "".join(element.proto.body for element in app.get("html"))
    assert "<img" not in html
    assert "&lt;img" in html
    app.slider(key="runs.step").set_value(39).run()
    assert app.header[0].value.startswith("Step 39")
    app.selectbox(key="runs.colour").set_value("weight").run()
    assert "line-through" in "".join(element.proto.body for element in app.get("html"))


def test_responses_of_a_log_that_does_not_tell_tokens(root):
    app = open_page(runs=["llm/seed-1"], runs__show="Responses")
    assert "has no entropy for each token" in texts(app)
    assert "no sample responses" in texts(open_page(runs=["short"], runs__show="Responses"))


def test_live_reads_what_was_added(root):
    app = open_page(runs=["short"], runs__live="true")
    assert "logged" in app.info[0].value
    log = RunLog(root / "short", {"steps": 5}, 0)
    for step in range(3):
        log.log(step, {"entropy": 1.0 - step / 4})
    app.run()
    assert "Running\\: short \\(step 2\\)" in texts(app)
    assert "Entropy goes from 1 to" in app.info[0].value


def test_a_table_of_tokens():
    table = parts.token_table({"tokens": ["a", "\n"], "logp": [-1.0, None], "weight": [1]})
    assert table is not None
    assert table["token"].tolist() == ["a", "↵\n"]
    assert table.columns.tolist() == ["token", "log p"]
    assert parts.token_table({"response": "x"}) is None


def trainer_state(first: float, steps: int = 40) -> bytes:
    """Return a trainer_state.json of TRL whose rewards start at `first` and rise by .01 a step."""
    history = [
        {"step": s, "entropy": 1.2 * np.exp(-s / 15), "reward": first + s / 100, "kl": 0.1} for s in range(1, steps + 1)
    ]
    return json.dumps({"global_step": steps, "log_history": history}).encode()


def test_a_dropped_log_is_drawn_and_compared(root):
    app = open_page(runs=["llm/seed-0"])
    app.file_uploader(key="runs.files").upload("trainer_state.json", trainer_state(0.5)).run()
    assert not app.exception
    name = "trainer_state.json (dropped)"
    assert app.multiselect(key="runs").value == [name, "llm/seed-0"]
    assert "Reward\\: highest in trainer\\_state.json \\(dropped\\)" in app.info[0].value
    assert "Running" not in texts(app)
    assert "2 metrics have entrostat's names, 1 keep their own" in texts(app).replace("\\", "")
    named = app.dataframe[-1].value
    assert named["in the file"].tolist() == ["entropy", "reward", "kl"]
    assert named["here"].tolist() == ["entropy", "reward", "kept: no metric of entrostat"]
    for section in view.SECTIONS:
        app.session_state["runs.show"] = section
        app.run()
        assert not app.exception
        assert not app.error
        if section == "Compare":
            assert app.dataframe[0].value["state"].tolist()[0] == "imported"


def test_dropped_logs_of_one_name_and_files_that_are_none(root):
    app = open_page(runs=["llm/seed-0"])
    files = [("trainer_state.json", trainer_state(0.2 * i), "application/json") for i in range(2)]
    app.file_uploader(key="runs.files").set_value([*files, ("<b>.log", b"nothing", "text/plain")]).run()
    assert app.multiselect(key="runs").value[:2] == ["trainer_state.json (dropped)", "trainer_state.json 2 (dropped)"]
    assert "\\<b\\>.log is no log that can be read" in app.error[0].value
    away = open_page(runs=["trainer_state.json (dropped)"])
    assert "was dropped in another session" in away.error[0].value


def test_logs_of_other_trainers_in_the_folder(root):
    for step in (10, 40):
        (root / "trl" / f"checkpoint-{step}").mkdir(parents=True)
        (root / "trl" / f"checkpoint-{step}" / "trainer_state.json").write_bytes(trainer_state(0.5, step))
    (root / "trl" / "chart.csv").write_text(
        "Step,a - entropy,a - reward,b - entropy,b - reward\n0,1,.5,1,.25\n1,1,.5,1,.5\n"
    )
    (root / "trl" / "notes.txt").write_text("step by step\n")
    (root / "llm" / "seed-0" / "more.jsonl").write_text('{"step": 1, "entropy": 1}\n')
    chosen = ["trl/chart.csv::b", "trl/checkpoint-40/trainer_state.json"]
    app = open_page(runs=chosen, runs__show="Compare")
    listed = app.multiselect(key="runs").options
    assert listed == ["seed-0", "seed-1", "short", "chart.csv::a", "chart.csv::b", "trainer_state.json"]
    assert app.dataframe[0].value["state"].tolist() == ["imported", "imported"]
    assert app.dataframe[0].value["reward"].tolist() == [0.5, 0.9]
    assert not app.error
    gone = open_page(runs=["trl/notes.txt", "trl/chart.csv::c"])
    assert "is no log that can be read" in gone.error[0].value
    (root / "trl" / "chart.csv").unlink()
    (root / "trl" / "chart.csv").symlink_to(root.parent / "secret.csv")
    assert "trl/chart.csv::a" not in open_page().multiselect(key="runs").options
