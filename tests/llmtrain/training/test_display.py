"""Output of a run: three lines before it, a line of each tenth step, and findings when they begin."""

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from entrostat import StepStats, make
from llmtrain.commands.demo import RUNS, base
from llmtrain.settings.config import DataConfig, ModelConfig, TrainConfig
from llmtrain.settings.presets import PRESETS
from llmtrain.training.display import AT_BOUND, QUIET, WINDOW, TrainDisplay, WarmUpDisplay, opening

STEP = {
    "entropy": 0.312,
    "reward": 0.314,
    "eval/pass@1": 0.2,
    "eval/pass@8": 0.541,
    "response_length": 7.41,
    "time/step": 1.93,
    "thermostat/bonus": 0.0121,
    "thermostat/kappa": 1.0,
    "quadrant/exploitation": 0.5,
    "quadrant/correction": 0.4,
}
HELD = {"entropy": 0.27}
LINE = "step 120/300  H 0.31 → 0.26 (+0.05, bonus 0.012)  reward 0.31  pass@8 0.54  len 7.4  1.9 s  left 0:00"


def shown(console, steps, *, done=0, total=300, controller=None):
    """Return the lines that stay after these steps, each with its changes to STEP."""
    with TrainDisplay("run", total, done, console, controller or make("thermostat", target=0.26)) as display:
        for step, changes in enumerate(steps, done):
            display(step, STEP | changes)
    return console.file.getvalue().splitlines()


def piped():
    return Console(file=io.StringIO(), width=40)


def found(steps, controller=None):
    """Return what is said besides the lines of the steps."""
    return [line for line in shown(piped(), steps, controller=controller) if ": " in line]


def test_a_line_has_everything_where_no_terminal_cuts_it():
    said = shown(piped(), [{}], done=119)
    assert [re.sub(r"left \S+", "left 0:00", line) for line in said] == [LINE]


@pytest.mark.parametrize(
    ("width", "numbers"),
    [
        (120, LINE[12:-4]),
        (100, LINE[12:-4].replace("  1.9 s", "")),
        (80, "  H 0.31 → 0.26 (bonus 0.012)  reward 0.31  pass@8 0.54  left "),
        (60, "  H 0.31 → 0.26  reward 0.31  left "),
        (48, "  H 0.31 → 0.26  left "),
    ],
)
def test_a_line_fits_the_terminal(width, numbers):
    console = Console(file=io.StringIO(), force_terminal=True, width=width)
    text = "\n".join(shown(console, [{}] * 20, done=100))
    lines = [line for line in re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", text).splitlines() if line.startswith("step 120/")]
    assert lines
    assert all(len(line) <= width and line.startswith(f"step 120/300{numbers}") for line in lines)


def test_a_gap_that_rounds_to_nothing_has_no_sign_of_its_own():
    """Half a hundredth below the target is +0.00, not −0.00."""
    (line,) = shown(piped(), [{"entropy": 0.2599}], done=119)
    assert "H 0.26 → 0.26 (+0.00, " in line


def test_a_run_without_a_target_has_only_the_entropy():
    line = shown(piped(), [{}], controller=make("grpo"))[0]
    assert line.startswith("step 1/300  H 0.31  reward 0.31")


def test_small_entropies_have_three_decimals():
    assert "H 0.031 → 0.26 (−0.23" in shown(piped(), [{"entropy": 0.031}])[0]


def test_lines_of_the_first_of_each_tenth_and_of_the_last_step():
    said = shown(piped(), [HELD] * 23, done=5, total=28)
    assert [line.split("/")[0] for line in said] == ["step 6", "step 10", "step 20", "step 28"]


def test_a_run_that_is_stopped_shows_its_last_step():
    assert [line.split("/")[0] for line in shown(piped(), [{}] * 4)] == ["step 1", "step 4"]


def test_slow_steps_have_a_line_each(monkeypatch):
    monkeypatch.setattr("llmtrain.process.progress.SAY_EVERY", 0)
    assert len(shown(piped(), [{}] * 7)) == 7


def test_an_actuator_at_its_bound_is_reported_once_until_it_was_away_for_long():
    pinned, free = HELD | {"thermostat/bonus": -1.0}, HELD
    said = "bonus is at its bound, bonus_max 1: --set bonus_max=… moves it"
    assert found([pinned] * (AT_BOUND - 1) + [free]) == []
    assert found([free, *[pinned] * (AT_BOUND + 9)]) == [f"step {AT_BOUND + 1}: {said}"]
    again = [*[pinned] * AT_BOUND, *[free] * 2, *[pinned] * AT_BOUND, *[free] * QUIET, *[pinned] * AT_BOUND]
    assert found(again) == [f"step {AT_BOUND}: {said}", f"step {len(again)}: {said}"]


def test_a_missed_target_is_reported_and_one_that_is_approached_is_not():
    below = found([{"entropy": 0.1}] * WINDOW)
    assert below == [f"step {WINDOW}: the entropy misses its target: 0.16 nats below it, and comes no nearer"]
    assert "0.44 nats above it" in found([{"entropy": 0.7}] * WINDOW)[0]
    assert found([{"entropy": 0.7 - 0.02 * step} for step in range(WINDOW + 2)]) == []
    assert found([{"entropy": 0.26 * 1.14}] * (WINDOW + 5)) == []
    assert found([{"entropy": 0.1}] * WINDOW, make("steer")) == []


def test_a_target_that_moves_is_that_of_the_log():
    controller = make("thermostat", target="linear(0.6, 0.1, 100)")
    steps = [{"entropy": 0.1, "thermostat/target": 0.1}] * WINDOW
    assert found(steps, controller) == []
    assert "H 0.10 → 0.10 (+0.00" in shown(piped(), steps, controller=controller)[0]


def test_groups_without_a_signal_are_reported():
    """Tokens in no quadrant have no advantage; a run that drops such groups logs the share that it keeps."""
    silent = {"quadrant/exploitation": 0.05, "quadrant/correction": 0.03}
    said = "step 10: no signal from 92% of the tokens: their groups are all right or all wrong"
    assert found([silent] * 12) == [said]
    assert found([{"groups/kept": 0.08}] * 12) == [said]
    assert found([silent | {"groups/kept": 0.5}] * 12) == []
    assert found([{}] * 12) == []


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("adaptive_clip", "k"),
        ("adaptive_entropy", "coef"),
        ("aer", "coef"),
        ("entropic", "alpha"),
        ("repo_r", "current_zeta"),
        ("stare", "positive_weight"),
        ("clip_higher+temperature_loop", "temperature"),
    ],
)
def test_the_actuator_is_what_the_controller_logs(spec, name):
    controller = make(spec)
    controller.observe(StepStats(entropy=0.5))
    metrics = {key: float(value) for key, value in controller.metrics().items()}
    assert f", {name} " in shown(piped(), [metrics], controller=controller)[0]


def test_before_the_first_step_the_run_is_named():
    display = TrainDisplay("thermostat", 300, 7, piped())
    assert display.line() == "thermostat: step 8/300 under way, 0:00"


@pytest.mark.parametrize("config", [*PRESETS.values(), *(replace(base(), **run) for run in RUNS.values())])
def test_three_lines_say_what_runs_where_and_for_how_long(config):
    what, where, steps = opening(config).splitlines()
    assert max(map(len, (what, where, steps))) <= 80
    assert config.controller in what
    assert config.out in where
    assert f"1 to {config.steps} " in steps


def test_the_page_has_what_is_printed():
    page = (Path(__file__).parents[3] / "docs/trainer.md").read_text()
    config = replace(base(), out="runs/demo/thermostat", **RUNS["thermostat"])
    line = LINE.replace("bonus", "anchor").replace("left 0:00", "left 5:40")
    assert f"```text\n{opening(config)}\n{line}\n```\n" in page


def test_the_lines_of_a_resumed_run_on_files():
    config = TrainConfig(
        controller="thermostat",
        target=0.3,
        controller_args={"mode": "bonus"},
        model=ModelConfig(path="models/Qwen2.5-Math-7B"),
        data=DataConfig(train_files=("data/a.parquet", "b.jsonl", "c.jsonl")),
    )
    what, _, steps = opening(config, done=40).splitlines()
    assert what == "resume Qwen2.5-Math-7B on a.parquet, b.jsonl and 1 more, thermostat (target 0.3, mode bonus)"
    assert steps.startswith("steps  41 to 160 of ")


def test_the_warm_up_has_its_time_left(monkeypatch):
    console = piped()
    with WarmUpDisplay(200, console) as display:
        for step in range(200):
            display(step, 1.5)
    first, last = console.file.getvalue().splitlines()
    assert re.fullmatch(r"warm-up 1/200  loss 1\.500  left …", first)
    assert last == "warm-up 200/200  loss 1.500  left 0:00"
