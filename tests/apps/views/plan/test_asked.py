"""Plans that are asked for, and the commands to their runs: what is shown is what the commands understand."""

import shlex

import pytest

from entrostat.settings.commandline import parse_settings
from entrostat.settings.plain_yaml import dump_yaml
from entrostat_app.views.plan import next_commands
from entrostat_app.views.plan.asked import ask
from entrostat_app.views.plan.next_commands import HERE, PLACES, RAY, SLURM
from llmtrain.commands import plan as command
from llmtrain.plan.headroom import ENOUGH, headroom
from llmtrain.settings.presets import read_config

ASKED = [
    ("", "h100", 8, {}),
    ("", "h20", 64, {"max_response_length": 4096, "mean_response_length": 900, "n": 16, "steps": 10}),
    ("", "h100", 1, {"model": "Qwen2.5-1.5B"}),
    ("steer/qwen2.5-math-7b", "h100", 8, {"mean_response_length": 700}),
    ("entropic/qwen3-8b", "h20", 64, {}),
    ("entropy_mechanism/qwen2.5-32b-kl-cov", "h200", 1, {}),
]


@pytest.mark.parametrize("room", [False, True])
@pytest.mark.parametrize("given", ASKED)
def test_the_plan_command_makes_the_same_plan(given, room):
    asked = ask(*given, room)
    words = shlex.split(next_commands.plan_command(asked))
    assert words[:2] == ["llmtrain", "plan"]
    assert words[-2:] == ["--write", "run.yaml"]
    recipe, rest = (words[3], words[4:-2]) if words[2] == "--recipe" else ("", words[2:-2])
    at = rest.index("--set") if "--set" in rest else len(rest)
    flags, settings = rest[:at], rest[at + 1 :]
    preset = command.placed(recipe, flags) if recipe else None
    found = command.read_config(preset, None, settings, flags)
    assert parse_settings(settings).keys() == asked.changes.keys() - {"gpu", "gpus"}
    assert found == asked.plan.config


@pytest.mark.parametrize("given", ASKED)
def test_room_is_left_where_it_can_be(given):
    tight, roomy = (ask(*given, room).plan for room in (False, True))
    whole = tight.layout.gpu.memory
    assert headroom(roomy)["rollout"] >= ENOUGH * whole * (1 - 1e-9)
    assert headroom(roomy)["training"] == headroom(tight)["training"]


def test_a_run_that_does_not_fit_gets_the_fix_of_the_plan():
    asked = ask("", "h100", 1, {}, room=False)
    assert asked.fix == {"offload_optimizer": True}
    assert asked.plan.config.offload_optimizer
    long = {"model": "Llama-3.1-8B", "max_response_length": 130_000}
    for gpus, settings, names in ((48, {}, "48 ranks"), (8, long, "gpu=h200")):
        with pytest.raises(ValueError, match=names):
            ask("", "h100", gpus, settings, room=False)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("smoke", [False, True])
def test_the_run_commands_are_understood(tmp_path, place, smoke):
    asked = ask("entropic/qwen3-8b", "h20", 64, {}, room=True)
    file = tmp_path / "run.yaml"
    file.write_text(dump_yaml(next_commands.settings_of(asked)))
    words = shlex.split(next_commands.run_command(asked.plan, place, "mine", smoke=smoke))
    config = read_config(["--config", str(file), *words[words.index("run.yaml") + 1 :]], "x")
    assert config.nproc == 64
    assert config.out == ("/mnt/" if place == RAY else "") + "runs/mine" + ("-smoke" if smoke else "")
    assert config.steps == (10 if smoke else 2000)
    assert config.save_every <= config.steps
    assert config.rollout.gpu_memory_utilization == asked.plan.config.gpu_memory_utilization


@pytest.mark.parametrize(
    ("gpus", "flags"),
    [
        (1, ["--gpus-per-node", "1", "--cpus-per-task", "16", "--mem", "200G"]),
        (8, ["--gpus-per-node", "8", "--exclusive", "--mem", "0"]),
        (64, ["--nodes", "8", "--gpus-per-node", "8", "--exclusive", "--mem", "0"]),
    ],
)
def test_slurm_is_asked_for_the_nodes_of_the_plan(gpus, flags):
    plan = ask("", "h100", gpus, {}, room=False).plan
    words = shlex.split(next_commands.run_command(plan, SLURM, "mine"))
    assert words[: len(flags) + 3] == ["sbatch", *flags, "examples/slurm.sh", "run.yaml"]
    assert shlex.split(next_commands.run_command(plan, HERE, "a b"))[-1] == "runs/a b"
