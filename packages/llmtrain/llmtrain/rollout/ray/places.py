"""Places of a run's actors on a Ray cluster: bundles of one placement group, and the environment of each actor.

colocated, on CUDA        a bundle is the GPUs of one rollout engine, which that many learners use as well
disaggregated, on CUDA    a bundle of one GPU a learner, one of tensor_parallel_size GPUs a rollout engine
on a CPU                  a bundle a learner, which rollout engines share, or one an engine; CPUs only
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from entrostat.installation import missing

from ...process.local_ranks import is_worker
from ...settings.config import TrainConfig

CPUS = 0.25
"""What an actor reserves of a CPU: a machine of two has room for all. GPUs are what is counted."""
WAIT_HERE, WAIT = 10.0, 600.0
"""Seconds to wait for resources of this machine, and of a cluster, whose nodes may be on their way."""
ENVIRONMENTS = "LLMTRAIN_ROLLOUT_ENVIRONMENTS"
"""Environment variable of learners: what to set for each rollout engine, as JSON."""


@dataclass(frozen=True)
class Place:
    """Where a learner lives."""

    node: str
    host: str
    pid: int
    port: int
    """A free one, for the process group."""
    cpus: int
    """Of its machine."""
    gpus: list[str]
    """Its GPUs, as CUDA_VISIBLE_DEVICES names them."""


@dataclass(frozen=True)
class Layout:
    """Bundles of the placement group, and which of them each actor goes to."""

    bundles: list[dict[str, float]]
    learners: list[int]
    engines: list[int]


@dataclass(frozen=True)
class Seat:
    """Where Ray puts a rollout engine, and what is set in its environment."""

    options: dict[str, Any]
    environment: dict[str, str] = field(default_factory=dict)


def check(config: TrainConfig) -> None:
    """What can be known to be wrong before the cluster is: ValueError."""
    if find_spec("ray") is None:
        raise ValueError(missing("ray"))
    if is_worker():
        raise ValueError("topology ray starts the ranks itself: run llmtrain without torchrun, with --nproc")
    if config.topology.address.startswith("ray://"):
        raise ValueError("topology.address must be HOST:PORT or auto; from outside a cluster use llmtrain launch")
    layout(config)


def layout(config: TrainConfig) -> Layout:
    """Where the actors of a run go; ValueError when they cannot."""
    learners, engines, tp = config.nproc, config.topology.rollout_engines, config.rollout.tensor_parallel_size
    gpu = int(config.device == "cuda")
    if config.topology.placement == "disaggregated":
        bundles = [_bundle(1, gpu)] * learners + [_bundle(1, gpu * tp)] * engines
        return Layout(bundles, list(range(learners)), list(range(learners, learners + engines)))
    size = tp if gpu else 1
    if learners % size or gpu * engines * size > learners:
        raise ValueError(
            f"colocated, {engines} rollout engines of {tp} GPUs use those of a multiple of {tp} learners, of "
            f"{engines * tp} at least, not of {learners}: change nproc, or use --topology.placement disaggregated"
        )
    homes = [rank // size for rank in range(learners)]
    guests = [engine % (learners // size) for engine in range(engines)]
    bundles = [_bundle(homes.count(b) + guests.count(b), gpu * size) for b in range(learners // size)]
    return Layout(bundles, homes, guests)


def _bundle(actors: int, gpus: int) -> dict[str, float]:
    return {"CPU": CPUS * actors} | ({"GPU": float(gpus)} if gpus else {})


def options(group: Any, bundle: int, gpus: int) -> dict[str, Any]:
    """Options of a Ray actor in a bundle of a placement group."""
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    strategy = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=bundle)
    return {"num_cpus": CPUS, "num_gpus": gpus, "scheduling_strategy": strategy}


def seats(config: TrainConfig) -> list[Seat]:
    """In a learner: where each rollout engine goes. Colocated ones reserve no GPU: they use those of learners."""
    import ray

    group, own = ray.util.get_current_placement_group(), config.topology.placement == "disaggregated"
    gpus = config.rollout.tensor_parallel_size if own and config.device == "cuda" else 0
    environments = json.loads(os.environ[ENVIRONMENTS])
    homes = layout(config).engines
    return [Seat(options(group, home, gpus), environments[engine]) for engine, home in enumerate(homes)]


@contextmanager
def placement(config: TrainConfig) -> Iterator[Any]:
    """The placement group of a run; ValueError when the cluster has no room for it."""
    import ray

    bundles = layout(config).bundles
    wanted = {name: sum(bundle.get(name, 0) for bundle in bundles) for name in ("CPU", "GPU")}
    group = ray.util.placement_group(bundles, strategy="PACK")
    try:
        if not group.wait(WAIT if config.topology.address else WAIT_HERE):
            there = {name: ray.cluster_resources().get(name, 0) for name in wanted}
            raise ValueError(
                f"the run needs {wanted['GPU']:g} GPUs and {wanted['CPU']:g} CPUs, in bundles of {bundles[-1]}; "
                f"the cluster has {there['GPU']:g} and {there['CPU']:g}, some of them in use"
            )
        yield group
    finally:
        ray.util.remove_placement_group(group)


def environments(config: TrainConfig, places: list[Place]) -> list[dict[str, str]]:
    """For each learner what torchrun would set, and what the first of them is to set for rollout engines."""
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
            "LOCAL_RANK": 0 if config.device == "cuda" else local,  # it sees no GPU but its own
            "LOCAL_WORLD_SIZE": near,
            "LOCAL_SIZE": near,
            "MASTER_ADDR": places[0].host,
            "MASTER_PORT": places[0].port,
            "OMP_NUM_THREADS": threads or max(1, places[rank].cpus // near),
            ENVIRONMENTS: json.dumps(engines),
        }
        made.append({name: str(value) for name, value in variables.items()})
    return made
