"""Runs on clusters: what is submitted, and the examples for Slurm and Kubernetes."""

import os
import shlex
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

from llmtrain.check import check
from llmtrain.cli import main
from llmtrain.cluster.launch import entrypoint, exit_code
from llmtrain.cluster.places import layout
from llmtrain.cluster.topology import cluster
from llmtrain.config import TopologyConfig
from llmtrain.presets import read_config

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_what_is_submitted():
    job = entrypoint(["--", "train", "--out", "my runs"], "/work/a b")
    assert job == (
        "cd '/work/a b' && python -m llmtrain train --out 'my runs' --topology.name ray --topology.address auto"
    )
    assert entrypoint(["resume", "runs/x"], None) == "python -m llmtrain resume runs/x --topology.address auto"


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
    assert said == "error: --address nonsense is no dashboard's: give one such as http://127.0.0.1:8265\n"


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
    """What a job server tells of a job that ended."""

    status: str
    driver_exit_code: int | None


@pytest.mark.parametrize(
    ("info", "code"), [(Info("SUCCEEDED", 0), 0), (Info("FAILED", 130), 130), (Info("FAILED", None), 1)]
)
def test_the_exit_code_is_that_of_the_run(info, code):
    assert exit_code(info) == code


def script(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/bash\n{text}\n")
    (folder / name).chmod(0o755)


def test_the_slurm_example(tmp_path):
    """On commands that stand for Slurm's and Ray's: one Ray a node, and one run that joins it."""
    script(tmp_path, "scontrol", 'printf "node1\\nnode2\\n"')
    script(tmp_path, "srun", 'while [[ $1 == --* ]]; do shift 2; done; exec "$@"')
    script(tmp_path, "hostname", "echo 10.0.0.7")
    script(tmp_path, "ray", 'printf "%q " "$@"; echo; echo "$RAY_AUTH_MODE $(stat -c %a "$RAY_AUTH_TOKEN_PATH")"')
    variables = {"SLURM_JOB_NODELIST": "node[1-2]", "SLURM_NNODES": "2", "HOME": str(tmp_path)}
    environment = os.environ | variables | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    environment.pop("RAY_AUTH_TOKEN_PATH", None)
    command = [EXAMPLES / "slurm.sh", "my run.yaml", "--nproc", "16"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    ray, auth = done.stdout.splitlines()
    assert auth == "token 600"
    options, run = ray.split(" -- ")
    assert options == "symmetric-run --address 10.0.0.7:6379 --min-nodes 2"
    assert shlex.split(run)[:4] == ["llmtrain", "train", "--config", "my run.yaml"]
    (tmp_path / "my run.yaml").write_text("out: x\n")
    config = read_config(["--config", str(tmp_path / "my run.yaml"), *shlex.split(run)[4:]], "t")
    assert (config.nproc, config.topology.name, config.topology.address) == (16, "ray", "10.0.0.7:6379")
    again = subprocess.run([EXAMPLES / "slurm.sh", "resume", "runs/x"], env=environment, capture_output=True, text=True)
    _, run = again.stdout.splitlines()[0].split(" -- ")
    assert shlex.split(run) == ["llmtrain", "resume", "runs/x", "--topology.address", "10.0.0.7:6379"]
    assert subprocess.run([EXAMPLES / "slurm.sh"], env=environment, capture_output=True).returncode == 2


def test_the_kuberay_example():
    """Its command is one of ours, and its workers have the GPUs that the run asks for."""
    job = yaml.safe_load((EXAMPLES / "kuberay.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    words = shlex.split(job["spec"]["entrypoint"])
    assert words[:4] == ["llmtrain", "train", "--config", "/data/config.yaml"]
    config = read_config(words[4:], "t")
    assert (config.topology.name, config.topology.address) == ("ray", "auto")
    cluster = job["spec"]["rayClusterSpec"]
    assert cluster["authOptions"] == {"mode": "token"}
    [workers] = cluster["workerGroupSpecs"]
    gpus = {}
    for name, group in (("head", cluster["headGroupSpec"]), ("worker", workers)):
        [container] = group["template"]["spec"]["containers"]
        gpus[name] = int(container["resources"]["limits"].get("nvidia.com/gpu", 0))
        volumes = {volume["name"] for volume in group["template"]["spec"]["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes
        assert "/data" in [mount["mountPath"] for mount in container["volumeMounts"]]
    assert workers["replicas"] * gpus["worker"] == sum(bundle["GPU"] for bundle in layout(config).bundles)
    version = cluster["rayVersion"]
    assert f"ray=={version}\n" in (EXAMPLES.parent / "constraints.txt").read_text()
