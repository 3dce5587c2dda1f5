import pytest
from full_disk import no_file_over
from rich.console import Console

from entrostat.about.colours import colour_of
from entrostat.logs.runlog import RunLog
from llmtrain.commands.compare import main as compare
from llmtrain.studies.comparison import Run, figure, smooth, table


def write(path, entropies, target=None):
    log = RunLog(path, {"target": target, "eval": {"k": 4}}, seed=0)
    for step, entropy in enumerate(entropies):
        log.log(step, {"entropy": entropy, "reward": 0.5, "tokens_per_second": 100.0})
    log.log(len(entropies), {"eval/pass@4": 0.25, "eval/avg@4": 0.125})
    log.close()
    return Run.read(path)


def test_means_are_over_the_last_third(tmp_path):
    run = write(tmp_path / "a", [9, 9, 9, 9, 1, 3], target=2.1)
    assert run.late("entropy") == 2
    assert run.last("eval/pass@4") == 0.25
    assert run.verdict() == "2.1 held -5%"
    assert write(tmp_path / "b", [1.0, 1.0, 1.16], target=1).verdict() == "1 missed +16%"
    assert write(tmp_path / "c", [1.0, 1.0, 0.996], target=1).verdict() == "1 held +0%"
    assert write(tmp_path / "c", [1.0]).verdict() == "none"


def test_table_and_figure(tmp_path):
    runs = [write(tmp_path / name, [0.5, 0.25, 0.25], target) for name, target in (("a", None), ("b", 0.25))]
    console = Console(width=80, record=True)
    console.print(table(runs))
    text = console.export_text()
    assert "0.50→0.25" in text
    assert "0.25 held +0%" in text
    assert "pass@4" in text
    figure(runs, tmp_path / "new" / "f.svg")
    drawn = (tmp_path / "new" / "f.svg").read_text()
    assert drawn.count('<g id="axes_') == 3
    assert "– -->" not in drawn
    with no_file_over(1000), pytest.raises(OSError, match="File too large") as told:
        figure(runs, tmp_path / "f.png")
    assert told.value.filename == str(tmp_path / "f.png")


def test_the_share_of_dropped_tokens_is_shown_if_a_run_drops_some(tmp_path):
    """By it Rand-Pos-Clip drops as many as a run of Clip-Cov did."""
    plain = write(tmp_path / "plain", [0.5])
    log = RunLog(tmp_path / "clip", {"eval": {"k": 4}}, seed=0)
    for step, share in enumerate([1e-4, 3e-4]):
        log.log(step, {"entropy": 0.5, "clip_cov/dropped": share})
    log.close()
    clip = Run.read(tmp_path / "clip")
    assert clip.dropped == pytest.approx(2e-4)
    assert [column.header for column in table([plain]).columns][-1] == "tokens/s"
    shown = table([plain, clip]).columns[-1]
    assert (shown.header, [*shown.cells]) == ("dropped", ["–", "0.0002"])


def test_a_target_that_moves(tmp_path):
    """The verdict is on its mean over the last third, and the figure has its line."""
    log = RunLog(tmp_path / "run", {"controller": "thermostat", "target": "linear(0.9, 0.1, 8)"}, seed=0)
    for step in range(9):
        log.log(step, {"entropy": 0.5, "thermostat/target": 0.9 - 0.1 * step})
    log.close()
    run = Run.read(tmp_path / "run")
    assert run.target == pytest.approx(0.2)
    assert run.verdict() == "0.2 missed +150%"
    figure([run], tmp_path / "figure.svg")
    assert "target" not in (tmp_path / "figure.svg").read_text()


def test_a_run_of_one_step_has_a_marker(tmp_path):
    """Entropy, reward and legend have the marker; the evaluation always has one."""
    colour = colour_of("thermostat")
    for entropies, markers in (([0.5, 0.25], 1), ([0.5], 4)):
        figure([write(tmp_path / f"thermostat-{markers}", entropies)], tmp_path / "f.svg")
        assert (tmp_path / "f.svg").read_text().count(f'style="fill: {colour}; stroke: {colour}"/>') == markers


def test_a_line_has_the_colour_of_its_controller(tmp_path):
    """Found in the run's settings, not in its name; a second run of it is dashed."""
    for name in ("steer", "mine"):
        RunLog(tmp_path / name, {"controller": "thermostat", "eval": {"k": 4}}, seed=0).log(0, {"entropy": 1.0})
    figure([Run.read(tmp_path / name) for name in ("steer", "mine")], tmp_path / "f.svg")
    drawn = (tmp_path / "f.svg").read_text()
    assert colour_of("thermostat") in drawn
    assert colour_of("steer") not in drawn
    assert "stroke-dasharray" in drawn


def rows(runs):
    """Return the table's cells by heading, one row per run."""
    found = table(runs)
    columns = [[column.header, *column.cells] for column in found.columns]
    headings, *lines = zip(*columns, strict=True)
    return [dict(zip(headings, line, strict=True)) for line in lines]


def test_pass_at_k_is_that_of_the_heading(tmp_path):
    for name, k, metrics in (
        ("eight", 8, {"eval/pass@8": 0.5, "eval/avg@8": 0.25, "eval/pass@1": 0.25}),
        ("two", 2, {"eval/pass@2": 0.75, "eval/avg@2": 0.375, "eval/pass@1": 0.375}),
        ("both", 2, {"eval/pass@2": 0.75, "eval/pass@8": 0.875}),
    ):
        log = RunLog(tmp_path / name, {"eval": {"k": k}}, seed=0)
        log.log(0, {"entropy": 1.0, "reward": 0.5, **metrics})
        log.close()
    runs = [Run.read(tmp_path / name) for name in ("eight", "two", "both")]
    assert [(row["avg@8"], row["pass@8"]) for row in rows(runs)] == [("0.250", "0.500"), ("–", "–"), ("–", "0.875")]
    figure(runs, tmp_path / "f.svg")
    assert "<!-- two: – -->" in (tmp_path / "f.svg").read_text()


def test_a_run_without_metrics_has_dashes(tmp_path):
    log = RunLog(tmp_path / "empty", {"target": 0.5}, seed=0)
    log.close()
    run = Run.read(tmp_path / "empty")
    (row,) = rows([run])
    assert row == dict.fromkeys(("reward", "avg@8", "pass@8", "entropy", "tokens/s"), "–") | {
        "run": "empty",
        "target": "0.5 –",
    }
    figure([run], tmp_path / "f.svg")
    assert (tmp_path / "f.svg").read_text().count("<!-- empty: – -->") == 3


def test_smoothing_starts_at_the_first_value_and_keeps_constants():
    import numpy as np

    assert smooth(np.array([2.0, 2.0, 2.0])).tolist() == [2, 2, 2]
    assert smooth(np.array([1.0, 0.0]))[1] == pytest.approx(0.85)


def test_not_a_run(tmp_path):
    with pytest.raises(ValueError, match=r"is not a run: it has no config\.yaml"):
        Run.read(tmp_path)


def test_the_log_of_another_trainer_beside_a_run(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "mine", [0.5, 0.25, 0.25])
    metrics = "actor/entropy:0.5 - critic/score/mean:0.75 - val-core/aime/acc/mean@32:0.125 - actor/mfu:0.3"
    (tmp_path / "theirs.log").write_text(f"starting\nstep:1 - {metrics}\nstep:2 - {metrics}\n")
    assert compare([str(tmp_path / "theirs.log"), str(tmp_path / "mine")]) == 0
    said = capsys.readouterr().out
    row = next(line for line in said.splitlines() if line.lstrip().startswith("theirs"))
    assert row.split() == ["theirs", "0.750", "0.125", "–", "0.50→0.50", "none", "–"]
    assert "avg@32" in said
    assert "imported: theirs: console output of verl or OpenRLHF, 2 steps" in said
    assert "kept under their own names: actor/mfu" in said
    assert (tmp_path / "compare.png").stat().st_size > 10_000
