"""The Slurm script: as bash with stand-ins for srun, Ray and llmtrain, and as jobs of a real Slurm."""

import os
import re
import shlex
import signal
import stat
import subprocess
from contextlib import suppress

import pytest
from tests.docs.pages import COMMANDS

from llmtrain.rollout.ray.places import layout
from llmtrain.settings.presets import read_config

pytestmark = pytest.mark.long  # other programs are stood in for

WAYS = (1, 8, 64)
[OF_PAGES] = {line for _, line in COMMANDS if line.startswith("sbatch ")}
"""The command of the pages, for 64 GPUs."""
SRUN = """\
#!/bin/bash
# The tasks of a step, each on a node of its own.
while [[ $1 == --* ]]; do declare "${1#--}=$2"; shift 2; done
[ "$nodes" = "$ntasks" ] || exit 3
for ((task = 1; task <= ntasks; task++)); do SLURMD_NODENAME=n$((relative + task)) "$@" & done
wait -n
"""


@pytest.fixture
def options(examples) -> dict[int, list[str]]:
    """Options of sbatch for each number of GPUs, as the header of the script has them."""
    found = {}
    for line in (examples / "slurm.sh").read_text().splitlines():
        if line.startswith("#   sbatch "):
            words = shlex.split(line[1:])[1:]
            found[gpus(words)] = words[: words.index("examples/slurm.sh")]
    return found


def gpus(words: list[str]) -> int:
    """Return how many GPUs a command of sbatch asks for."""
    nodes = int(words[words.index("--nodes") + 1]) if "--nodes" in words else 1
    return nodes * int(words[words.index("--gpus-per-node") + 1])


def test_the_readme_has_the_commands_of_the_header(options, readme):
    commands = [words[1:] for words in readme if words[0] == "sbatch" and "run.yaml" in words]
    assert {gpus(words): words[: words.index("examples/slurm.sh")] for words in commands} == options
    assert tuple(options) == WAYS


def run(examples, stand_ins, nodes, args, cpus=64, gpus=8, **more):
    """Run the script as the job of a cluster; its exit code and what it printed."""
    stand_ins.add("srun", SRUN)
    sizes = {"SLURM_JOB_NUM_NODES": nodes, "SLURM_GPUS_ON_NODE": gpus, "SLURM_CPUS_ON_NODE": cpus}
    environment = stand_ins.environment | {name: str(value) for name, value in sizes.items()} | more
    with (stand_ins.folder / "output").open("w") as output:
        job = subprocess.Popen(
            [examples / "slurm.sh", *args], env=environment, stdout=output, stderr=output, start_new_session=True
        )
        try:
            return job.wait(60), (stand_ins.folder / "output").read_text()
        finally:
            with suppress(ProcessLookupError):  # nothing is left
                os.killpg(job.pid, signal.SIGKILL)


@pytest.mark.parametrize("count", WAYS)
def test_the_job_has_the_gpus_of_the_run(count, options, examples, stand_ins, planned, capsys):
    """On one node no Ray is started; on several each has one, and the trainer joins it."""
    nodes = max(1, count // 8)
    config = planned(count)
    flags = ["--model.path", "my model", "--data.train-files", "questions.parquet", "--out", "runs/math"]
    cpus = int(options[count][options[count].index("--cpus-per-task") + 1]) if count == 1 else 64
    code, said = run(examples, stand_ins, nodes, [str(config), *flags], cpus, min(count, 8))
    assert code == 0, said
    [call] = stand_ins.calls("llmtrain")
    assert call["args"][0] == "train"
    made = read_config(call["args"][1:], "t")
    address = f"127.0.0.1:{stand_ins.environment['RAY_PORT']}" if nodes > 1 else ""
    name = "ray" if nodes > 1 else "local"
    assert (made.model.path, made.topology.name, made.topology.address) == ("my model", name, address)
    assert sum(bundle["GPU"] for bundle in layout(made).bundles) == count == gpus(options[count])
    assert call["environment"]["OMP_NUM_THREADS"] == ("16" if count == 1 else "8")
    rays = stand_ins.calls("ray")
    assert {ray["environment"]["SLURMD_NODENAME"] for ray in rays} == (
        {f"n{number}" for number in range(1, nodes + 1)} if nodes > 1 else set()
    )
    assert sum("--head" in ray["args"] for ray in rays) == (nodes > 1)
    for process in [call, *rays]:
        assert process["environment"]["RAY_AUTH_MODE"] == "token"
        token = process["environment"]["RAY_AUTH_TOKEN_PATH"]
        assert stat.S_IMODE(os.stat(token).st_mode) == 0o600
        assert os.stat(token).st_size == 64


def test_the_token_of_before_stays(examples, stand_ins, tmp_path):
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("mine")
    assert run(examples, stand_ins, 1, ["run.yaml"])[0] == 0
    assert (tmp_path / ".ray" / "auth_token").read_text() == "mine"


@pytest.mark.parametrize(("nodes", "address"), [(1, []), (2, ["--topology.address", "127.0.0.1:{port}"])])
def test_a_run_is_continued(nodes, address, examples, stand_ins):
    code, said = run(examples, stand_ins, nodes, ["resume", "runs/my math"])
    assert code == 0, said
    [call] = stand_ins.calls("llmtrain")
    port = stand_ins.environment["RAY_PORT"]
    assert call["args"] == ["resume", "runs/my math", *(word.format(port=port) for word in address)]


def test_ray_knows_the_options(examples, stand_ins):
    """Parsed by Ray's own command line, which refuses an option that it does not have."""
    scripts = pytest.importorskip("ray.scripts.scripts")
    assert run(examples, stand_ins, 2, ["run.yaml"])[0] == 0
    calls = [call["args"] for call in stand_ins.calls("ray")]
    assert len(calls) == 2
    for command, *args in calls:
        given = scripts.cli.commands[command].make_context(command, args).params
        assert given["block"]
        assert given["disable_usage_stats"]
        assert given["head"] != bool(given["address"])


def test_a_ray_that_cannot_start_ends_the_job(examples, stand_ins):
    code, said = run(examples, stand_ins, 2, ["run.yaml"], RAY_FAILS="yes")
    assert code == 1
    assert "no Ray today" in said
    assert stand_ins.calls("llmtrain") == []


@pytest.mark.parametrize(
    ("missing", "args", "message"),
    [
        ("", [], "usage: sbatch "),
        ("SLURM_JOB_NUM_NODES", ["run.yaml"], "start this script with sbatch"),
        ("SLURM_GPUS_ON_NODE", ["run.yaml"], "ask for GPUs: sbatch --gpus-per-node 8"),
    ],
)
def test_what_is_missing_is_said(missing, args, message, examples, stand_ins):
    variables = {"SLURM_JOB_NUM_NODES": "1", "SLURM_GPUS_ON_NODE": "8", "SLURM_CPUS_ON_NODE": "64"}
    variables.pop(missing, None)
    done = subprocess.run(
        [examples / "slurm.sh", *args], env=stand_ins.environment | variables, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert message in done.stderr
    assert stand_ins.calls("llmtrain") == []


# On a real Slurm ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", WAYS)
def test_slurm_takes_the_script(count, options, examples, slurm):
    """It would start the job at once, on as many nodes as there should be, with all CPUs of nodes taken whole."""
    done = slurm.call("sbatch", "--verbose", "--test-only", *options[count], str(examples / "slurm.sh"), "run.yaml")
    assert done.returncode == 0, done.stderr
    cpus, nodes = re.search(r"using (\d+) processors on nodes (\S+) in partition", done.stderr).groups()
    assert (int(cpus), nodes) == {1: (16, "n1"), 8: (64, "n1"), 64: (512, "n[1-8]")}[count]
    assert re.search(r"signal +: B:INT@600", done.stderr)


def test_slurm_refuses_what_the_cluster_does_not_have(examples, slurm):
    for wrong in (["--gpus-per-node", "9"], ["--nodes", "9"], ["--signal", "B:NONE@600"]):
        assert slurm.call("sbatch", "--test-only", *wrong, str(examples / "slurm.sh"), "run.yaml").returncode != 0


def submit(slurm, stand_ins, examples, options, *args, **more):
    """Submit the script and return the number of its job."""
    log = stand_ins.folder / "output"
    command = ["sbatch", "--parsable", "--output", str(log), *options, str(examples / "slurm.sh"), *args]
    done = slurm.call(*command, environment=stand_ins.environment | more)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("count", WAYS)
def test_a_job_runs(count, options, examples, slurm, stand_ins):
    args = ["run.yaml", "--out", "runs/math"]
    if count == 64:
        words = shlex.split(OF_PAGES)
        at = words.index("examples/slurm.sh")
        assert words[1:at] == options[64]
        args = words[at + 1 :]
    job = slurm.wait(submit(slurm, stand_ins, examples, options[count], *args))
    assert job["JobState"] == "COMPLETED", (stand_ins.folder / "output").read_text()
    [call] = stand_ins.calls("llmtrain")
    assert call["args"][: len(args) + 2] == ["train", "--config", *args]
    assert call["environment"]["SLURMD_NODENAME"] == "n1"
    assert call["environment"]["SLURM_GPUS_ON_NODE"] == str(min(count, 8))
    assert call["environment"]["OMP_NUM_THREADS"] == ("16" if count == 1 else "8")
    rays = [ray["environment"] for ray in stand_ins.calls("ray")]
    assert sorted(ray["SLURMD_NODENAME"] for ray in rays) == (
        [f"n{number}" for number in range(1, 9)] if count == 64 else []
    )
    assert all((ray["SLURM_GPUS_ON_NODE"], ray["RAY_AUTH_MODE"]) == ("8", "token") for ray in rays)


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.long), 64])
def test_a_signal_reaches_the_trainer(count, options, examples, slurm, stand_ins):
    """As Slurm sends it before the time limit: to the batch script, whose place the trainer takes."""
    job = submit(slurm, stand_ins, examples, options[count], "run.yaml", UNTIL_SIGNAL="yes")
    slurm.until(lambda: stand_ins.calls("llmtrain"), "start of the trainer")
    assert slurm.call("scancel", "--batch", "--signal", "INT", job).returncode == 0
    ended = slurm.wait(job)
    assert (ended["JobState"], ended["ExitCode"]) == ("FAILED", "130:0")
