"""Placement of a run's actors on a Ray cluster: bundles of one placement group, and each actor's environment.

colocated, on CUDA        one bundle per rollout engine: its GPUs, shared with as many learners
disaggregated, on CUDA    one bundle of one GPU per learner, one of tensor_parallel_size GPUs per rollout engine
on a CPU                  one bundle of CPUs per learner, shared with rollout engines, or also one per engine
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from entrostat.settings.installation import missing

from ...process.local_ranks import is_worker
from ...settings.config import TrainConfig

CPUS = 0.25
"""CPUs that an actor reserves: few, so that two CPUs hold all actors. GPUs limit the placement."""
WAIT_HERE, WAIT = 10.0, 600.0
"""Seconds to wait for resources of this machine, and of a cluster whose nodes may still start."""
ENVIRONMENTS = "LLMTRAIN_ROLLOUT_ENVIRONMENTS"
"""Environment variable of learners with the variables of each rollout engine, as JSON."""


@dataclass(frozen=True)
class Place:
    """Node and devices of a learner."""

    node: str
    host: str
    pid: int
    port: int
    """Free port for the process group."""
    cpus: int
    """Number of CPUs of its machine."""
    gpus: list[str]
    """GPUs of the learner, as CUDA_VISIBLE_DEVICES names them."""


@dataclass(frozen=True)
class Layout:
    """Bundles of the placement group, and the bundle of each actor."""

    bundles: list[dict[str, float]]
    learners: list[int]
    engines: list[int]


@dataclass(frozen=True)
class Seat:
    """Ray options and environment of a rollout engine."""

    options: dict[str, Any]
    environment: dict[str, str] = field(default_factory=dict)


def check(config: TrainConfig) -> None:
    """Raise ValueError if the topology cannot work, before the cluster is contacted."""
    if find_spec("ray") is None:
        raise ValueError(missing("ray"))
    if is_worker():
        raise ValueError("topology ray starts the ranks itself: run llmtrain without torchrun, with --nproc")
    shared = config.device == "cuda" and config.topology.placement == "colocated"
    if config.topology.elastic_engines and shared:
        raise ValueError(
            "topology.elastic_engines need engines with GPUs of their own: use --topology.placement disaggregated"
        )
    if config.topology.address.startswith("ray://"):
        raise ValueError("topology.address must be HOST:PORT or auto; from outside a cluster use llmtrain launch")
    layout(config)


def layout(config: TrainConfig) -> Layout:
    """Return the bundles of a run's actors. Raise ValueError if they cannot be placed."""
    learners, engines, tp = config.nproc, config.rollout_engines, config.rollout.tensor_parallel_size
    gpu = int(config.device == "cuda")
    if config.topology.placement == "disaggregated":
        bundles = [_bundle(1, gpu)] * learners + [_bundle(1, gpu * tp)] * engines
        return Layout(bundles, list(range(learners)), list(range(learners, learners + engines)))
    size = tp if gpu else 1
    if learners % size or gpu * engines * size > learners:
        raise ValueError(
            f"colocated, {engines} rollout engines of {tp} GPUs need nproc to be a multiple of {tp}, at least "
            f"{engines * tp}, not {learners}: change nproc, or use --topology.placement disaggregated"
        )
    homes = [rank // size for rank in range(learners)]
    guests = [engine % (learners // size) for engine in range(engines)]
    bundles = [_bundle(homes.count(b) + guests.count(b), gpu * size) for b in range(learners // size)]
    return Layout(bundles, homes, guests)


def _bundle(actors: int, gpus: int) -> dict[str, float]:
    return {"CPU": CPUS * actors} | ({"GPU": float(gpus)} if gpus else {})


def options(group: Any, bundle: int, gpus: int) -> dict[str, Any]:
    """Return options of a Ray actor in a bundle of a placement group."""
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    strategy = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=bundle)
    return {"num_cpus": CPUS, "num_gpus": gpus, "scheduling_strategy": strategy}


def seats(config: TrainConfig) -> list[Seat]:
    """Return the seats of the rollout engines; called in a learner. Colocated engines reserve no GPU."""
    import ray

    group, own = ray.util.get_current_placement_group(), config.topology.placement == "disaggregated"
    gpus = config.rollout.tensor_parallel_size if own and config.device == "cuda" else 0
    environments = json.loads(os.environ[ENVIRONMENTS])
    homes = layout(config).engines
    return [Seat(options(group, home, gpus), environments[engine]) for engine, home in enumerate(homes)]


def elastic_seats(config: TrainConfig) -> list[Seat]:
    """Return the seats of elastic engines; called in a learner. They are outside the run's placement group."""
    gpus = config.rollout.tensor_parallel_size if config.device == "cuda" else 0
    first = json.loads(os.environ[ENVIRONMENTS])[0] if config.device == "cpu" else {}
    return [Seat({"num_cpus": CPUS, "num_gpus": gpus}, first)] * config.topology.elastic_engines


@contextmanager
def placement(config: TrainConfig) -> Iterator[Any]:
    """Hold the placement group of a run. Raise ValueError if the cluster has no room for it."""
    import ray

    bundles = layout(config).bundles
    wanted = {name: sum(bundle.get(name, 0) for bundle in bundles) for name in ("CPU", "GPU")}
    group = ray.util.placement_group(bundles, strategy="PACK")
    try:
        if not group.wait(WAIT if config.topology.address else WAIT_HERE):
            there = {name: ray.cluster_resources().get(name, 0) for name in wanted}
            raise ValueError(
                f"the run needs {wanted['GPU']:g} GPUs and {wanted['CPU']:g} CPUs, in bundles of {bundles[-1]}; "
                f"the cluster has {there['GPU']:g} and {there['CPU']:g}, and some may be in use"
            )
        yield group
    finally:
        ray.util.remove_placement_group(group)


def environments(config: TrainConfig, places: list[Place]) -> list[dict[str, str]]:
    """Return the environment of each learner: torchrun's variables, and the variables of the rollout engines."""
    plan, nodes = layout(config), [place.node for place in places]
    threads = os.environ.get("OMP_NUM_THREADS")
    engines: list[dict[str, str]] = []
    for home in plan.engines:
        shared = [gpu for place, at in zip(places, plan.learners, strict=True) if at == home for gpu in place.gpus]
        alone = places[0].cpus if config.topology.staleness == 0 else max(1, places[0].cpus // 2)
        engines.append({"OMP_NUM_THREADS": threads or str(alone)} if config.device == "cpu" else {})
        if shared:
            engines[-1]["CUDA_VISIBLE_DEVICES"] = ",".join(shared)
    made = []
    for rank, node in enumerate(nodes):
        near = nodes.count(node)
        local = nodes[:rank].count(node)
        variables = {
            "RANK": rank,
            "WORLD_SIZE": len(nodes),
            "LOCAL_RANK": 0 if config.device == "cuda" else local,  # it sees only its own GPU
            "LOCAL_WORLD_SIZE": near,
            "LOCAL_SIZE": near,
            "MASTER_ADDR": places[0].host,
            "MASTER_PORT": places[0].port,
            "OMP_NUM_THREADS": threads or max(1, places[rank].cpus // near),
            ENVIRONMENTS: json.dumps(engines),
        }
        made.append({name: str(value) for name, value in variables.items()})
    return made
