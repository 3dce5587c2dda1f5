"""The KubeRay manifests for 1, 8 and 64 GPUs."""

import json
import os
import shlex
import shutil
import subprocess
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from tests.docs.pages import COMMANDS, ROOT
from tests.examples.json_server import JsonAnswers, serving

from llmtrain.plan.cost import make_plan
from llmtrain.plan.plan_presets import get_preset
from llmtrain.rollout.ray.places import layout
from llmtrain.settings.presets import read_config

FOLDER = Path(__file__).parents[2] / "examples" / "kuberay"
WAYS, ELASTIC = (1, 8, 64), "64gpu-elastic"
GIB = 2**30
GROUP = {"rayStartParams": dict, "template": {"spec": dict}}
RAYJOB = {
    "entrypoint": str,
    "shutdownAfterJobFinishes": bool,
    "ttlSecondsAfterFinished": int,
    "rayClusterSpec": {
        "rayVersion": str,
        "enableInTreeAutoscaling": bool,
        "authOptions": {"mode": str},
        "headGroupSpec": {"serviceType": str, **GROUP},
        "workerGroupSpecs": [{"groupName": str, "replicas": int, "minReplicas": int, "maxReplicas": int, **GROUP}],
    },
}
"""Fields of a RayJob's specification that we use, with the types that KubeRay's resource definition gives them."""


def build(folder: Path) -> dict:
    """Build the manifest of a folder as `kubectl kustomize` does: one resource, some values of which are replaced."""
    made = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert set(made) <= {"resources", "patches"}
    [resource] = made["resources"]
    path = folder / resource
    job = build(path) if path.is_dir() else yaml.safe_load(path.read_text())
    job = json.loads(json.dumps(job))  # aliases become copies
    for patch in made.get("patches", []):
        assert patch["target"] == {"kind": job["kind"]}
        for change in yaml.safe_load(patch["patch"]):
            assert change["op"] == "replace"
            *parents, leaf = [int(key) if key.isdigit() else key for key in change["path"].split("/")[1:]]
            place = job
            for key in parents:
                place = place[key]
            assert leaf in place  # kustomize refuses to replace what is not there
            place[leaf] = change["value"]
    return job


@pytest.fixture(params=WAYS)
def count(request) -> int:
    """Number of GPUs."""
    return request.param


@pytest.fixture
def job(count) -> dict:
    """Manifest for as many GPUs."""
    return build(FOLDER / f"{count}gpu")


def groups(job: dict) -> list[dict]:
    """Return the groups of pods: the head and the workers."""
    cluster = job["spec"]["rayClusterSpec"]
    return [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]


def container(group: dict) -> dict:
    """Return the one container of a group's pods."""
    [only] = group["template"]["spec"]["containers"]
    return only


def test_the_readme_has_a_command_for_each_folder(readme):
    folders = [Path(words[-1]).name for words in readme if words[:3] == ["kubectl", "apply", "-k"]]
    assert folders == [*(f"{count}gpu" for count in WAYS), ELASTIC]
    assert {path.name for path in FOLDER.iterdir()} == {"base", *folders}


GROUP_VERSION = "ray.io/v1"
KNOWN = {
    "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.0"},
    "/openapi/v3": {"paths": {f"apis/{GROUP_VERSION}": {"serverRelativeURL": "/openapi/v3/ray"}}},
    "/openapi/v3/ray": {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1"},
        "paths": {
            f"/apis/{GROUP_VERSION}/namespaces/{{namespace}}/rayjobs/{{name}}": {
                "patch": {
                    "parameters": [{"name": "fieldValidation", "in": "query"}],
                    "x-kubernetes-group-version-kind": {"group": "ray.io", "version": "v1", "kind": "RayJob"},
                }
            }
        },
    },
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": []},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [{"name": "ray.io", "versions": [{"groupVersion": GROUP_VERSION, "version": "v1"}]}],
    },
    f"/apis/{GROUP_VERSION}": {
        "kind": "APIResourceList",
        "groupVersion": GROUP_VERSION,
        "resources": [{"name": "rayjobs", "kind": "RayJob", "namespaced": True, "verbs": ["get", "create", "patch"]}],
    },
}
"""Answers of an API server with KubeRay's resources to kubectl's questions about what it knows."""


class ApiServer(ThreadingHTTPServer):
    """API server of Kubernetes, which keeps the resources that it is sent and runs nothing."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.created: dict[str, dict] = {}


class Answers(JsonAnswers):
    """Answers to the requests that create a resource."""

    server: ApiServer

    def do_GET(self) -> None:
        if (found := KNOWN.get(self.path.partition("?")[0])) is not None:
            return self.answer(200, found)
        return self.answer(404, {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404})

    def do_POST(self) -> None:
        made = json.loads(self.body())
        self.server.created[self.path] = made
        self.answer(201, made)


@pytest.fixture
def kubernetes(tmp_path):
    """An API server on loopback, and the environment in which kubectl talks to it."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    with serving(ApiServer()) as server:
        context = {"name": "here", "context": {"cluster": "here", "user": "here"}}
        cluster = {"name": "here", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
        users = [{"name": "here", "user": {}}]
        (tmp_path / "config").write_text(
            yaml.safe_dump({"clusters": [cluster], "contexts": [context], "users": users, "current-context": "here"})
        )
        own = {"KUBECONFIG": str(tmp_path / "config"), "HOME": str(tmp_path), "NO_PROXY": "127.0.0.1"}
        yield server, os.environ | own


def applied(words: list[str], kubernetes) -> dict:
    """Run a command of kubectl; return the one resource that the API server has then."""
    server, environment = kubernetes
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "rayjob.ray.io/llmtrain created\n"
    [(path, job)] = server.created.items()
    assert path.startswith(f"/apis/{GROUP_VERSION}/namespaces/default/rayjobs?")
    assert "fieldValidation=Strict" in path
    del job["metadata"]["annotations"], job["metadata"]["namespace"]
    return job


@pytest.mark.long
@pytest.mark.parametrize("folder", [*(f"{count}gpu" for count in WAYS), ELASTIC])
def test_kubectl_applies_it(folder, readme, kubernetes):
    [words] = [words for words in readme if words[:2] == ["kubectl", "apply"] and Path(words[-1]).name == folder]
    assert applied(words, kubernetes) == build(FOLDER / folder)


@pytest.mark.long
@pytest.mark.parametrize("line", sorted({line for _, line in COMMANDS if line.startswith("kubectl ")}))
def test_a_command_of_a_page_is_applied(line, kubernetes):
    words = shlex.split(line)
    assert applied(words, kubernetes) == build(ROOT / words[-1])


def has_type(value: object, kind: object) -> bool:
    """Return whether a value has these fields and no others, with values of these types."""
    if isinstance(kind, dict):
        return isinstance(value, dict) and set(value) == set(kind) and all(has_type(value[k], kind[k]) for k in kind)
    if isinstance(kind, list):
        return isinstance(value, list) and all(has_type(entry, kind[0]) for entry in value)
    return type(value) is kind


def test_it_is_a_ray_job(job):
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert has_type(job["spec"], RAYJOB)
    cluster = job["spec"]["rayClusterSpec"]
    assert cluster["authOptions"]["mode"] == "token"
    assert f"ray=={cluster['rayVersion']}\n" in (FOLDER.parents[1] / "constraints.txt").read_text()
    for group in groups(job):
        assert all(type(value) is str for value in group["rayStartParams"].values())


def test_kubernetes_would_take_the_pods(job):
    """By the JSON schemas of Kubernetes, which know no other fields than its own."""
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    for group in groups(job):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ray"}, **group["template"]}
        kubernetes_validate.validate(pod, kubernetes_validate.latest_version(), strict=True)
        pod["spec"] = pod["spec"] | {"container": []}
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(pod, kubernetes_validate.latest_version(), strict=True)


def test_the_command_is_that_of_the_plan(count, job, planned):
    """Workers have the GPUs that the planned run asks for, and each place of it fits on a pod."""
    words = shlex.split(job["spec"]["entrypoint"])
    config = planned(count)
    assert words[:4] == ["llmtrain", "train", "--config", "/data/run.yaml"]
    run = read_config(["--config", str(config), *words[4:]], "t")
    assert (run.topology.name, run.topology.address, run.device) == ("ray", "auto", "cuda")
    for path in (run.model.path, *run.data.train_files, run.out):
        assert path.startswith("/data/")
    head, workers = groups(job)
    limits = container(workers)["resources"]["limits"]
    each = int(limits["nvidia.com/gpu"])
    assert "nvidia.com/gpu" not in container(head)["resources"]["limits"]
    assert head["rayStartParams"] == {"num-gpus": "0"}
    places = layout(run).bundles
    assert workers["replicas"] * each == sum(place["GPU"] for place in places) == count
    assert all(place["GPU"] <= each for place in places)
    assert workers["minReplicas"] == workers["replicas"] == workers["maxReplicas"]
    threads = {entry["name"]: entry["value"] for entry in container(head)["env"]}["OMP_NUM_THREADS"]
    assert int(threads) * each == int(limits["cpu"])


def test_elastic_engines_get_the_gpus_that_the_autoscaler_may_add(planned):
    """Beside those of the run, which it holds from start to end; nothing else differs from the fixed cluster."""
    job, fixed = build(FOLDER / ELASTIC), build(FOLDER / "64gpu")
    assert has_type(job["spec"], RAYJOB)
    (workers,), cluster = groups(job)[1:], job["spec"]["rayClusterSpec"]
    command, own = (shlex.split(each["spec"].pop("entrypoint")) for each in (job, fixed))
    assert command[: len(own)] == own
    run = read_config(
        ["--config", str(planned(64)), *command[4:], "--topology.placement", "disaggregated", "--nproc", "32"], "t"
    )
    each = int(container(workers)["resources"]["limits"]["nvidia.com/gpu"])
    more = workers["maxReplicas"] - workers["minReplicas"]
    assert more * each == run.topology.elastic_engines * run.rollout.tensor_parallel_size
    assert cluster["enableInTreeAutoscaling"]
    cluster["enableInTreeAutoscaling"], workers["maxReplicas"] = False, workers["minReplicas"]
    assert job == fixed


def test_pods_have_the_memory_of_the_plan(count, job):
    """For the model while it is read, offloaded states, and what the memory volume may hold."""
    memory = make_plan(get_preset(f"qwen2.5-math-7b-{count}gpu").config).memory
    workers = groups(job)[1]
    [shared] = [volume["emptyDir"] for volume in workers["template"]["spec"]["volumes"] if "emptyDir" in volume]
    needed = memory.loading + memory.host + gibibytes(shared["sizeLimit"])
    assert gibibytes(container(workers)["resources"]["limits"]["memory"]) >= needed


def gibibytes(quantity: str) -> int:
    """Return the bytes of a quantity such as 64Gi."""
    assert quantity.endswith("Gi")
    return int(quantity[:-2]) * GIB


def test_pods_mount_what_they_have(job):
    for group in groups(job):
        ray = container(group)
        mounts = {mount["name"]: mount["mountPath"] for mount in ray["volumeMounts"]}
        assert mounts == {"data": "/data", "shm": "/dev/shm"}
        assert {volume["name"] for volume in group["template"]["spec"]["volumes"]} == set(mounts)
        assert ray["resources"]["requests"] == ray["resources"]["limits"]
        assert ray["image"] == container(groups(job)[0])["image"]


def test_the_way_to_continue_is_a_command_of_ours():
    text = (FOLDER / "base" / "rayjob.yaml").read_text()
    [line] = [line for line in text.splitlines() if "llmtrain resume" in line]
    entrypoint = yaml.safe_load(text)["spec"]["entrypoint"].split()
    assert line.split()[1:] == [
        *("llmtrain", "resume", entrypoint[entrypoint.index("--out") + 1]),
        *("--topology.address", "auto"),
    ]
