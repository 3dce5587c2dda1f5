"""Places of learners and rollout engines: bundles by hand, and GPUs as a real Ray hands them out."""

import json
import os
from dataclasses import replace

import pytest

pytest.importorskip("ray")

import ray

from llmtrain.cluster.learner_actor import Learner
from llmtrain.rollout.ray.places import ENVIRONMENTS, check, environments, layout, options, placement
from llmtrain.settings.config import RolloutConfig, TopologyConfig, TrainConfig
from llmtrain.settings.presets import get_preset


@pytest.fixture(scope="module")
def here():
    """A Ray that believes in four GPUs, which only Ray itself is asked about."""
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    ray.init("local", num_gpus=4, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def gpu_run(nproc, engines, tp, where="colocated"):
    topology = TopologyConfig(name="ray", placement=where, rollout_engines=engines)
    rollout = RolloutConfig(tensor_parallel_size=tp)
    return TrainConfig(nproc=nproc, device="cuda", topology=topology, rollout=rollout)


@pytest.mark.parametrize(
    ("run", "gpus", "learners", "engines"),
    [
        ((4, 2, 1), [1, 1, 1, 1], [0, 1, 2, 3], [0, 1]),
        ((8, 2, 4), [4, 4], [0, 0, 0, 0, 1, 1, 1, 1], [0, 1]),
        ((2, 1, 4, "disaggregated"), [1, 1, 4], [0, 1], [2]),
    ],
)
def test_where_actors_go(run, gpus, learners, engines):
    plan = layout(gpu_run(*run))
    assert [bundle["GPU"] for bundle in plan.bundles] == gpus
    assert (plan.learners, plan.engines) == (learners, engines)


def test_elastic_engines_need_gpus_of_their_own():
    asked = {"device": "cuda", "nproc": 2}
    topology = TopologyConfig(name="ray", elastic_engines=1)
    with pytest.raises(ValueError, match=r"elastic_engines .*--topology\.placement"):
        check(TrainConfig(topology=topology, **asked))
    check(TrainConfig(topology=replace(topology, placement="disaggregated"), **asked))
    with pytest.raises(ValueError, match=r"nccl .* elastic_engines 0"):
        replace(topology, placement="disaggregated", weight_sync="nccl")


def test_the_preset_fits_two_cores():
    assert sum(bundle["CPU"] for bundle in layout(get_preset("countdown-ray")).bundles) < 2


@pytest.mark.parametrize("run", [(2, 3, 1), (6, 1, 4), (4, 2, 4)])
def test_places_that_cannot_be(run):
    with pytest.raises(ValueError, match=f"{run[1]} rollout engines of {run[2]} GPUs .*nproc .*multiple of {run[2]}"):
        layout(gpu_run(*run))


@pytest.mark.long
def test_colocated_engines_use_the_gpus_of_the_learners_beside_them(here):
    """As Ray hands them out: two engines of two GPUs each, beside four learners."""
    config = gpu_run(4, 2, 2)
    with placement(config) as group:
        actor = ray.remote(Learner)
        learners = [actor.options(**options(group, home, 1)).remote() for home in layout(config).learners]
        places = ray.get([learner.settle.remote(os.getcwd()) for learner in learners])
        for learner in learners:
            ray.kill(learner)
    variables = environments(config, places)
    assert sorted(gpu for place in places for gpu in place.gpus) == ["0", "1", "2", "3"]
    engines = [engine["CUDA_VISIBLE_DEVICES"].split(",") for engine in json.loads(variables[0][ENVIRONMENTS])]
    assert engines == [places[0].gpus + places[1].gpus, places[2].gpus + places[3].gpus]
    assert [v["RANK"] for v in variables] == list("0123")
    assert {(v["WORLD_SIZE"], v["LOCAL_WORLD_SIZE"], v["LOCAL_RANK"]) for v in variables} == {("4", "4", "0")}


@pytest.mark.slow
def test_a_cluster_without_room(here, monkeypatch):
    monkeypatch.setattr("llmtrain.rollout.ray.places.WAIT_HERE", 0.5)
    with pytest.raises(ValueError, match=r"8 GPUs and 2\.25 CPUs, .* 4 "), placement(gpu_run(8, 1, 1)):
        pass
