"""Runs on clusters: submitted and refused commands."""

from dataclasses import dataclass, replace

import pytest

from llmtrain.cli import main
from llmtrain.cluster.topology import cluster
from llmtrain.commands.launch import entrypoint, exit_code
from llmtrain.settings.config import TopologyConfig
from llmtrain.training.check import check


def test_what_is_submitted():
    start = "env -u OMP_NUM_THREADS python -m llmtrain"
    job = entrypoint(["--", "train", "--out", "my runs"], "/work/a b")
    assert job == f"cd '/work/a b' && {start} train --out 'my runs' --topology.name ray --topology.address auto"
    assert entrypoint(["resume", "runs/x"], None) == f"{start} resume runs/x --topology.address auto"


@pytest.mark.parametrize(
    ("address", "args", "names"),
    [
        ("http://127.0.0.1:1", [], "launch needs a command: train or resume"),
        ("http://127.0.0.1:1", ["plan"], "launch: unknown command 'plan'; choose from train, resume"),
        ("http://127.0.0.1:1", ["train"], "no Ray dashboard at http://127.0.0.1:1: "),
        ("nonsense", ["train"], "--address nonsense"),
    ],
)
def test_what_cannot_be_submitted(address, args, names, capsys):
    assert main(["launch", "--address", address, *args]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert names in line


def test_a_cluster_that_is_not_there():
    with pytest.raises(ValueError, match=r"no Ray cluster at 127.0.0.1:1: .*refused"), cluster("127.0.0.1:1"):
        pass


@pytest.mark.parametrize(
    ("environment", "address", "names"),
    [
        ({}, "ray://head:10001", "topology.address must be HOST:PORT or auto; .* llmtrain launch"),
        ({"RANK": "0", "WORLD_SIZE": "1"}, "", "without torchrun"),
    ],
)
def test_topologies_that_cannot_be(small, monkeypatch, environment, address, names):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=names):
        check(replace(small, topology=TopologyConfig(name="ray", address=address)))


@dataclass
class Info:
    """Job server's description of a finished job."""

    status: str
    driver_exit_code: int | None


@pytest.mark.parametrize(
    ("info", "code"), [(Info("SUCCEEDED", 0), 0), (Info("FAILED", 130), 130), (Info("FAILED", None), 1)]
)
def test_the_exit_code_is_that_of_the_run(info, code):
    assert exit_code(info) == code
