"""Script and command for a Ray cluster that is running: Ray's own client submits to a job server of the test."""

import importlib.util
import io
import json
import os
import shlex
import subprocess
import sys
import zipfile
from http.server import ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.docs.pages import CALLS, our_words
from tests.examples.json_server import JsonAnswers, serving

from llmtrain.cli import main
from llmtrain.rollout.ray.places import layout
from llmtrain.settings.presets import read_config

pytestmark = pytest.mark.long  # other programs are stood in for

WAYS = (1, 8, 64)
FLAGS = ["--model.path", "/mnt/my model", "--data.train-files", "/mnt/train.parquet", "--out", "/mnt/runs/math"]


class JobServer(ThreadingHTTPServer):
    """Job server of a Ray cluster, which keeps what it is sent and runs nothing."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.packages: dict[str, bytes] = {}
        self.jobs: list[dict] = []
        self.tokens: set[str | None] = set()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answers(JsonAnswers):
    """Answers to the four requests that submit a job."""

    server: JobServer

    def answer(self, code: int, content: object) -> None:
        self.server.tokens.add(self.headers["Authorization"])
        super().answer(code, content)

    def do_GET(self) -> None:
        if self.path == "/api/version":  # 0 is one that has no logs to follow
            self.answer(200, {"version": "0", "ray_version": version("ray")})
        else:
            found = Path(self.path).name in self.server.packages
            self.answer(200 if found else 404, {})

    def do_PUT(self) -> None:
        self.server.packages[Path(self.path).name] = self.body()
        self.answer(200, {})

    def do_POST(self) -> None:
        self.server.jobs.append(json.loads(self.body()))
        self.answer(200, {"job_id": "raysubmit_1", "submission_id": "raysubmit_1"})


@pytest.fixture
def server():
    """A job server on loopback."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("ray is not installed")
    with serving(JobServer()) as made:
        yield made


def submit(examples, server, args, **environment):
    """Run the script against a job server."""
    own = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "NO_PROXY": "127.0.0.1"}
    return subprocess.run(
        [examples / "ray_job.sh", server.address, *args],
        env=os.environ | own | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_run_is_submitted(examples, server, planned, tmp_path, monkeypatch):
    """It comes with its configuration alone; the cluster gives the trainer all GPUs, and none to the entrypoint."""
    config = planned(64)
    (tmp_path / "large").write_bytes(bytes(1000))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "secret" * 8}
    done = submit(examples, server, [str(config), *FLAGS], TMPDIR=str(scratch), **token)
    assert done.returncode == 0, done.stderr
    assert server.tokens == {f"Bearer {token['RAY_AUTH_TOKEN']}"}
    assert list(scratch.glob("tmp.*")) == []
    [(name, package)] = server.packages.items()
    [job] = server.jobs
    assert job["runtime_env"]["working_dir"] == f"gcs://{name}"
    assert job["runtime_env"]["env_vars"]["RAY_JOB_STOP_SIGNAL"] == "SIGINT"
    assert not job["entrypoint_num_gpus"]
    with zipfile.ZipFile(io.BytesIO(package)) as files:
        assert [file for file in files.namelist() if not file.endswith("/")] == ["run.yaml"]
        assert files.read("run.yaml") == config.read_bytes()
    words = shlex.split(job["entrypoint"])
    assert words[:7] == ["env", "-u", "OMP_NUM_THREADS", "python", "-m", "llmtrain", "train"]
    for count in WAYS:
        monkeypatch.chdir(planned(count).parent)  # where run.yaml is that of as many GPUs
        run = read_config(words[7:], "t")
        assert (run.model.path, run.out) == ("/mnt/my model", "/mnt/runs/math")
        assert (run.topology.name, run.topology.address) == ("ray", "auto")
        assert sum(place["GPU"] for place in layout(run).bundles) == count
        assert len(layout(run).engines) * run.rollout.tensor_parallel_size == count  # no GPU idles


LAUNCHED = [words[2:] for _, line in CALLS if (words := our_words(line))[:2] == ["llmtrain", "launch"]]
"""Arguments of the pages' commands that submit a run."""


@pytest.mark.parametrize("args", LAUNCHED, ids=[" ".join(args)[:50] for args in LAUNCHED])
def test_a_command_of_a_page_is_submitted(server, args, capsys):
    option, address, *rest = args
    assert (option, address[:7]) == ("--address", "http://")
    assert main(["launch", "--address", server.address, "--no-wait", *rest]) == 0
    assert capsys.readouterr().out.startswith("job raysubmit_1; stop it with: ray job stop --address http://127.0.0.1:")
    [job] = server.jobs
    folder, run = rest[1], rest[2:]
    assert rest[0] == "--folder"
    place, _, line = job["entrypoint"].partition(" && ")
    assert shlex.split(place) == ["cd", folder]
    submitted = [*run, "--topology.name", "ray", "--topology.address", "auto"]
    assert shlex.split(line) == ["env", "-u", "OMP_NUM_THREADS", "python", "-m", "llmtrain", *submitted]
    assert job["runtime_env"]["env_vars"]["RAY_JOB_STOP_SIGNAL"] == "SIGINT"


def test_a_run_is_continued(examples, server):
    done = submit(examples, server, ["resume", "/mnt/runs/my math"])
    assert done.returncode == 0, done.stderr
    assert server.packages == {}
    [job] = server.jobs
    words = shlex.split(job["entrypoint"])
    assert words[5:] == ["llmtrain", "resume", "/mnt/runs/my math", "--topology.address", "auto"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "usage: "),
        (["http://127.0.0.1:1"], "usage: "),
        (["http://127.0.0.1:1", "run.yaml"], "error: give --out an absolute path on the cluster"),
        (["http://127.0.0.1:1", "run.yaml", "--out", "runs/math"], "error: give --out an absolute path on the cluster"),
    ],
)
def test_what_is_not_submitted(args, message, examples):
    done = subprocess.run([examples / "ray_job.sh", *args], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(message)


def test_the_readme_has_the_commands_of_the_header(examples, readme):
    header = [line for line in (examples / "ray_job.sh").read_text().splitlines() if line.startswith("#   examples/")]
    commands = [words for words in readme if words[0] == "examples/ray_job.sh"]
    assert [line[1:].split() for line in header] == [words for words in commands if "resume" not in words]
