"""Runs on clusters: submitted and refused commands."""

from dataclasses import dataclass, replace

import pytest

from llmtrain.cli import main
from llmtrain.cluster.topology import cluster
from llmtrain.commands.launch import entrypoint, exit_code
from llmtrain.settings.config import TopologyConfig
from llmtrain.training.check import check


def test_what_is_submitted():
    job = entrypoint(["--", "train", "--out", "my runs"], "/work/a b")
    assert job == (
        "cd '/work/a b' && env -u OMP_NUM_THREADS python -m llmtrain train --out 'my runs'"
        " --topology.name ray --topology.address auto"
    )
    assert (
        entrypoint(["resume", "runs/x"], None)
        == "env -u OMP_NUM_THREADS python -m llmtrain resume runs/x --topology.address auto"
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "error: launch nothing: choose from train, resume\n"),
        (["plan"], "error: launch plan: choose from train, resume\n"),
        (["train"], "error: no Ray dashboard at http://127.0.0.1:1: "),
    ],
)
def test_what_cannot_be_submitted(args, message, capsys):
    assert main(["launch", "--address", "http://127.0.0.1:1", *args]) == 2
    assert capsys.readouterr().err.startswith(message)


def test_what_is_no_address(capsys):
    assert main(["launch", "--address", "nonsense", "train"]) == 2
    said = capsys.readouterr().err
    assert said == "error: --address nonsense is not a dashboard address such as http://127.0.0.1:8265\n"


def test_a_cluster_that_is_not_there():
    with pytest.raises(ValueError, match=r"no Ray cluster at 127.0.0.1:1: .*refused"), cluster("127.0.0.1:1"):
        pass


@pytest.mark.parametrize(
    ("environment", "address", "message"),
    [
        (
            {},
            "ray://head:10001",
            "topology.address must be HOST:PORT or auto; from outside a cluster use llmtrain launch",
        ),
        ({"RANK": "0", "WORLD_SIZE": "1"}, "", "topology ray starts the ranks itself: run llmtrain without torchrun"),
    ],
)
def test_topologies_that_cannot_be(small, monkeypatch, environment, address, message):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=message):
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
