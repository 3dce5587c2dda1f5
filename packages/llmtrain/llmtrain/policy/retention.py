"""Checkpoints that a run keeps: the newest, every so many steps, and the best by a metric of the run log.

A line of metrics.jsonl at step s describes the weights after s rollout steps, and so does checkpoint step-s. Everything
follows from these two, so a resumed run keeps the same checkpoints.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from entrostat.logs.runlog import read_metrics

from ..settings.config import CheckpointConfig
from .checkpoint import checkpoints, step_of


def to_keep(run: str | Path, config: CheckpointConfig) -> set[Path]:
    """Return the checkpoints of a run that stay when the others are removed."""
    found = checkpoints(run)
    kept = set(found[-config.keep_last :])
    if config.keep_every:
        kept |= {path for path in found if step_of(path) % config.keep_every == 0}
    if config.keep_best and (known := scored(found, values(run, config.keep_best))):
        kept.add(max(known, key=known.__getitem__))
    return kept


def values(run: str | Path, metric: str) -> dict[int, float]:
    """Return the values of a metric by step; empty without a run log."""
    lines = read_metrics(run) if (Path(run) / "metrics.jsonl").is_file() else []
    return {line["step"]: float(line[metric]) for line in lines if line.get(metric) is not None}


def scored(found: Iterable[Path], value: Mapping[int, float]) -> dict[Path, float]:
    """Return the checkpoints whose step has a value, newest first, so that `max` takes the newest of equal ones."""
    return {path: value[step_of(path)] for path in sorted(found, key=step_of, reverse=True) if step_of(path) in value}


def best(run: str | Path, metric: str) -> Path:
    """Return the checkpoint with the highest value of a metric. Raise ValueError if no checkpoint has one."""
    known = scored(checkpoints(run), values(run, metric))
    if not known:
        logged = {key for line in read_metrics(run) for key in line if key.startswith("eval/") and key.count("/") < 3}
        names = ", ".join(sorted(key for key in logged if not key.endswith(("/low", "/high")))[:12])
        raise ValueError(f"no checkpoint of {run} has the metric {metric!r}; its evaluations have {names or 'none'}")
    return max(known, key=known.__getitem__)
