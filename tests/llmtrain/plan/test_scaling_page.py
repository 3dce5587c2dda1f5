import json
import re
import shlex
from pathlib import Path

import pytest
from benchmarks.pages import scaling as scaling_page

from llmtrain.cli import main
from llmtrain.plan.cost import make_plan
from llmtrain.plan.plan_config import PlanConfig

PAGE = Path(__file__).parents[3] / "docs/scaling.md"
ROWS = re.findall(
    r"^\| ([\d,]+) \| ([\d,]+) \| (\d+)% \| .*? \| .*? \| .*?, \d+% \| ([\d,]+) \| [\d.]+ \|", PAGE.read_text(), re.M
)
COMMANDS = re.findall(r"^llmtrain plan --recipe .*$", PAGE.read_text(), re.M)


@pytest.mark.slow
def test_the_page_is_what_the_code_says(capsys):
    """Rewritten by: python -m benchmarks.pages.scaling > docs/scaling.md"""
    scaling_page.main()
    assert capsys.readouterr().out == PAGE.read_text()


def test_every_row_has_its_command():
    assert len(ROWS) == len(COMMANDS) == len(scaling_page.RUNS) * len(scaling_page.GPUS)


@pytest.mark.parametrize(("row", "command"), list(zip(ROWS, COMMANDS, strict=True)), ids=[row[0] for row in ROWS])
def test_the_command_of_a_row_prints_its_numbers(row, command, capsys):
    assert main([*shlex.split(command)[1:], "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    gpus, seconds, rollout, hours = (int(number.replace(",", "")) for number in row)
    assert f"--gpus {gpus} " in command
    step = plan["seconds"]["step"]
    assert round(step) == seconds
    assert round(plan["run"]["gpu_hours"]) == hours
    assert rollout == pytest.approx(100 * sum(plan["seconds"]["rollout"].values()) / step, abs=0.51)


def test_no_more_ranks_than_responses_of_a_mini_batch():
    config = PlanConfig(gpus=512, prompts=32, mini_batch_size=4, n=8)
    assert scaling_page.apart(config) == {"colocated": False, "rollout_gpus": 512 - 32}
    assert scaling_page.apart(PlanConfig(gpus=8)) == {"colocated": False, "rollout_gpus": 4}


def test_the_largest_part_and_its_share():
    plan = make_plan(PlanConfig(gpus=64, gpu="h20"))
    part, share = scaling_page.largest(plan)
    assert part == "forward and backward"
    assert share == plan.training[part] / plan.seconds
    assert all(share >= seconds / plan.seconds for seconds in plan.rollout.seconds.values())


def test_tuned_plans_take_no_change_that_affects_learning():
    plan, changes = scaling_page.tuned(PlanConfig(gpus=64))
    assert not {"colocated", "staleness", "stats"} & set(changes)
    assert plan.seconds < make_plan(PlanConfig(gpus=64)).seconds
