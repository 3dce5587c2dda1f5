"""Commands that stand for llmtrain and Ray, a Slurm cluster of this machine alone, and the plans of the presets."""

import getpass
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from llmtrain.cli import main
from llmtrain.process.local_ranks import free_port

EXAMPLES = Path(__file__).parents[2] / "examples"
NODES = 8
STAND_IN = """\
#!{python} -IS
import json, os, signal, socket, sys, time
from pathlib import Path

program, args, folder = Path(sys.argv[0]).name, sys.argv[1:], Path(os.environ["STAND_INS"])


def record():
    file = folder / f"{{program}}-{{os.getpid()}}.tmp"
    file.write_text(json.dumps({{"args": args, "environment": dict(os.environ)}}))
    file.rename(file.with_suffix(".json"))


def option(name):
    return args[args.index(name) + 1]


if program == "ray":  # the head listens, the others reach it, and all stay, as they do with --block
    if os.environ.get("RAY_FAILS"):
        sys.exit("no Ray today")
    if "--head" in args:
        server = socket.create_server((option("--node-ip-address"), int(option("--port"))))
    else:
        host, port = option("--address").split(":")
        socket.create_connection((host, int(port)), timeout=5).close()
    record()
    time.sleep(60)
else:  # the trainer waits for all nodes, or for a signal
    signal.signal(signal.SIGINT, lambda number, frame: sys.exit(130))
    record()
    nodes, end = int(os.environ["SLURM_JOB_NUM_NODES"]), time.monotonic() + 30
    while os.environ.get("UNTIL_SIGNAL") or (nodes > 1 and len(list(folder.glob("ray-*.json"))) < nodes):
        if time.monotonic() > end:
            sys.exit(1)
        time.sleep(0.02)
"""
GETENT = """\
#!/bin/bash
[ "$1" = ahostsv4 ] && printf '127.0.0.1       STREAM %s\\n127.0.0.1       DGRAM\\n' "$2"
"""


@pytest.fixture
def examples() -> Path:
    """Folder of the examples."""
    return EXAMPLES


@pytest.fixture
def readme() -> list[list[str]]:
    """Commands of the examples' README, as words."""
    text = (EXAMPLES / "README.md").read_text()
    return [shlex.split(line) for block in text.split("```")[1::2] for line in block.strip().splitlines()]


@pytest.fixture
def planned(tmp_path, monkeypatch, readme) -> Callable[[int], Path]:
    """Make the configuration of a run on a number of GPUs, by the command of the README; returns its file."""
    commands = [words for words in readme if words[:2] == ["llmtrain", "plan"]]

    def plan(gpus: int) -> Path:
        [command] = [words for words in commands if f"-{gpus}gpu" in " ".join(words)]
        monkeypatch.chdir(tmp_path)
        assert main(command[1:]) == 0
        return tmp_path / command[command.index("--write") + 1]

    return plan


@dataclass
class StandIns:
    """Programs called llmtrain, ray and getent. What they were called with is in `folder`."""

    folder: Path
    environment: dict[str, str]
    """Environment in which they are found."""

    def add(self, name: str, text: str) -> None:
        """Add a program."""
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o755)

    def calls(self, program: str) -> list[dict]:
        """Return args and environment of every call of a program."""
        return [json.loads(file.read_text()) for file in self.folder.glob(f"{program}-*.json")]


@pytest.fixture
def stand_ins(tmp_path) -> StandIns:
    """Stand-ins for llmtrain, ray and getent, in a home folder of their own."""
    folder = tmp_path / "stand-ins"
    folder.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "RAY_", "SLURM"))}
    own = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "STAND_INS": str(folder),
        "RAY_PORT": str(free_port()),
    }
    made = StandIns(folder, kept | own)
    for program in ("llmtrain", "ray"):
        made.add(program, STAND_IN.format(python=sys.executable))
    made.add("getent", GETENT)
    return made


def free_ports(count: int) -> list[int]:
    """Return TCP ports of loopback that nobody listens on and that no outgoing connection will take."""
    ports: set[int] = set()
    while len(ports) < count:
        ports.add(free_port())
    return list(ports)


@dataclass
class Slurm:
    """A Slurm cluster whose controller and nodes are processes of this machine, on loopback."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """Environment in which Slurm's commands find this cluster."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def call(self, *command: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run one of Slurm's commands to its end."""
        variables = (os.environ if environment is None else environment) | self.environment
        return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)

    def until(self, true: Callable[[], object], what: str, seconds: float = 30.0) -> None:
        """Wait until `true` returns something true; fails the test if it does not within `seconds`."""
        end = time.monotonic() + seconds
        while not true():
            if time.monotonic() > end:
                pytest.fail(f"after {seconds:g} s still not: {what}; see {self.folder}")
            time.sleep(0.05)

    def job(self, number: str) -> dict[str, str]:
        """Return what the controller knows of a job, such as JobState."""
        said = self.call("scontrol", "--oneliner", "show", "job", number).stdout
        return dict(word.split("=", 1) for word in said.split() if "=" in word)

    def wait(self, number: str) -> dict[str, str]:
        """Wait for the end of a job and return what the controller knows of it."""
        ended = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
        self.until(lambda: self.job(number)["JobState"] in ended, f"end of job {number}")
        return self.job(number)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory) -> Iterator[Slurm]:
    """A Slurm cluster of eight nodes, each with what it takes to be 8 GPUs, 64 CPUs and 1 TB of memory."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    controller, node = shutil.which("slurmctld", path=path), shutil.which("slurmd", path=path)
    if controller is None or node is None or shutil.which("sbatch") is None:
        pytest.skip("Slurm is not installed: apt-get install slurmctld slurmd slurm-client")
    cluster = Slurm(tmp_path_factory.mktemp("slurm"))
    for name in ("state", *(f"spool-n{number}" for number in range(1, NODES + 1))):
        (cluster.folder / name).mkdir()
    configure(cluster.folder)
    commands = [[controller, "-D"]] + [[node, "-D", "-N", f"n{number}"] for number in range(1, NODES + 1)]
    daemons = []
    try:
        for command in commands:
            with (cluster.folder / f"{Path(command[0]).name}-{command[-1]}.out").open("w") as output:
                daemons.append(
                    subprocess.Popen(command, env=os.environ | cluster.environment, stdout=output, stderr=output)
                )
        ready = f"idle {NODES}"
        cluster.until(lambda: cluster.call("sinfo", "-h", "-o", "%T %D").stdout.strip() == ready, ready)
        yield cluster
        cluster.call("scancel", "--user", getpass.getuser())
        cluster.until(lambda: not cluster.call("squeue", "-h").stdout, "end of all jobs")
    finally:
        for daemon in daemons:
            daemon.terminate()
        for daemon in daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for process in members(cluster):
            process.kill()


def configure(folder: Path) -> None:
    """Write the configuration of a cluster that this user alone can reach, without munge, accounts and cgroups."""
    control, *ports = free_ports(1 + NODES)
    nodes = [
        f"NodeName=n{number} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} Gres=gpu:8 "
        "Sockets=1 CoresPerSocket=64 ThreadsPerCore=1 RealMemory=1000000"
        for number, port in enumerate(ports, 1)
    ]
    settings = {
        "ClusterName": "examples",
        "SlurmctldHost": "localhost",
        "SlurmctldPort": control,
        "SlurmUser": getpass.getuser(),
        "SlurmdUser": getpass.getuser(),
        "AuthType": "auth/none",
        "CredType": "cred/none",
        "CommunicationParameters": "NoInAddrAny,NoCtldInAddrAny",
        "StateSaveLocation": folder / "state",
        "SlurmdSpoolDir": folder / "spool-%n",
        "SlurmctldPidFile": folder / "controller.pid",
        "SlurmdPidFile": folder / "%n.pid",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "SlurmdParameters": "config_overrides",
        "GresTypes": "gpu",
        "KillWait": 2,
        "MailProg": "/bin/true",
    }
    lines = [f"{name}={value}" for name, value in settings.items()] + nodes
    lines += ["PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP"]
    (folder / "slurm.conf").write_text("\n".join(lines) + "\n")
    for number in range(8):
        (folder / f"gpu{number}").touch()
    (folder / "gres.conf").write_text(f"Name=gpu File={folder}/gpu[0-7]\n")


def members(cluster: Slurm) -> list[psutil.Process]:
    """Return all processes of this machine that belong to a cluster or its jobs."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("SLURM_CONF") == cluster.environment["SLURM_CONF"]:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found
