"""Finished runs in little space, so that a study's pages can be made again without training.

    FOLDER/kl_ref_beta=0.05/0.json.gz     {"config": {...}, "metrics": {"step": [...], "entropy": [...], ...},
                                           "processor": "AMD EPYC (avx2)"}

A compact log has the settings of its run, the metrics that pages read, the processor of the machine, and nothing else.
"""

import gzip
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

from entrostat.logs.runlog import read_manifest
from entrostat.settings.field_types import merge

from ..settings.config import TrainConfig
from ..settings.nested import to_dict
from ..settings.renamed import current_keys
from .comparison import Run

KEPT = re.compile(
    r"entropy|temperature|reward|verify/copied|grad_norm|response_length|eval/.*|[^/]+/target|thermostat/(anchor|bonus)"
)
"""Names of the metrics that are kept."""
DIGITS = 6
"""Significant digits of a metric."""


def path_of(folder: Path, config: TrainConfig) -> Path:
    """Return the file of a run, whose own folder is <entry>/<seed>."""
    run = Path(config.out)
    return folder / run.parent.name / f"{run.name}.json.gz"


def save(config: TrainConfig, path: Path) -> None:
    """Write the compact log of the finished run in `config.out`."""
    run = Run.read(config.out)
    names = [name for name in dict.fromkeys(key for line in run.metrics for key in line) if KEPT.fullmatch(name)]
    metrics = {name: [short(line.get(name)) for line in run.metrics] for name in names}
    metrics["step"] = [line["step"] for line in run.metrics]
    path.parent.mkdir(parents=True, exist_ok=True)
    settings = to_dict(replace(config, out=f"{path.parent.name}/{Path(config.out).name}"))  # no folder of this machine
    made = read_manifest(Path(config.out) / "manifest.json")
    parts = dict.fromkeys(part.get("processor", "") for part in (made, *made.get("resumed", ())))
    content = json.dumps({"config": settings, "metrics": metrics, "processor": ", then ".join(filter(None, parts))})
    path.write_bytes(gzip.compress(content.encode(), mtime=0))


def processors(folder: Path) -> Counter[str]:
    """Return how many runs in a folder of compact logs each processor has made; "" for those that do not say."""
    logs = (json.loads(gzip.decompress(path.read_bytes())) for path in sorted(folder.glob("*/*.json.gz")))
    return Counter(log.get("processor", "") for log in logs)


def load(config: TrainConfig, path: Path) -> Run:
    """Return the run in a compact log. Raises ValueError if it has other settings than `config`."""
    content = json.loads(gzip.decompress(path.read_bytes()))
    had = merge(TrainConfig(), current_keys(content["config"]))
    if not is_the_run(had, config):
        raise ValueError(f"{path} is of a run with other settings: choose another --logs, or remove it")
    columns = content["metrics"]
    lines = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return Run(path.parent.name, content["config"], lines)


def is_the_run(had: TrainConfig, wanted: TrainConfig) -> bool:
    """Return True if a finished run under `had` is one under `wanted`.

    Its folder, its processes and the limit of its mismatch change no result; `old_logp auto` is exact within 1e-5.
    """
    guard = replace(had.guard, mismatch=wanted.guard.mismatch, mismatch_above=wanted.guard.mismatch_above)
    rollout = had.rollout
    if (rollout.old_logp, wanted.rollout.old_logp) == ("trainer", "auto"):
        rollout = replace(rollout, old_logp="auto")
    topology = replace(wanted.topology, staleness=had.topology.staleness)
    had = replace(had, out=wanted.out, overwrite=wanted.overwrite, guard=guard, rollout=rollout, topology=topology)
    return had == wanted


def short(value: float | None) -> float | None:
    """Return a number with DIGITS significant digits; None for None."""
    return None if value is None else float(f"{value:.{DIGITS}g}")
