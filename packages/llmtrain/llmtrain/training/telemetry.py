"""Metrics sinks besides the run log (TensorBoard, Weights & Biases), and traces of torch's profiler.

    <out>/tensorboard/     every metric by its name:  tensorboard --logdir runs
    <out>/trace/           a file for each traced rollout step and rank, for https://ui.perfetto.dev or chrome://tracing

Only rank 0 writes to the sinks; every rank traces itself.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from netrc import NetrcParseError, netrc
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import torch

from entrostat.logs.runlog import RunLog

from ..settings.config import TrainConfig
from ..settings.nested import to_dict

INSTALL = {"tensorboard": "pip install tensorboard, or --log.no-tensorboard", "wandb": "pip install wandb"}


class Sink(Protocol):
    """Destination of metrics."""

    def log(self, step: int, metrics: Mapping[str, float]) -> None: ...

    def close(self) -> None: ...


class TensorBoard:
    """Event files in `folder`, flushed at every step.

    resume_at: first step to write; earlier events of this and later steps are ignored. None removes old event files.
    """

    def __init__(self, folder: Path, resume_at: int | None) -> None:
        from torch.utils.tensorboard import SummaryWriter

        if resume_at is None:
            shutil.rmtree(folder, ignore_errors=True)
        self.writer: Any = SummaryWriter(str(folder), purge_step=resume_at)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        # One event: add_scalar writes one for each metric, which takes longer than a small model's optimizer step.
        values = [Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
        self.writer.file_writer.add_summary(Summary(value=values), step)
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()


class WandB:
    """Weights & Biases run. Its id is in <out>/wandb_id, so that a resumed run continues it.

    Steps trained again after a crash keep their first values: Weights & Biases accepts no earlier step.
    Log in, or set WANDB_MODE=offline.
    """

    def __init__(self, config: TrainConfig, resume_at: int | None) -> None:
        wandb: Any = import_module("wandb")
        remembered = Path(config.out) / "wandb_id"
        known = remembered.read_text().strip() if resume_at is not None and remembered.is_file() else None
        self.run = wandb.init(
            project=config.log.wandb_project,
            name=Path(config.out).name,
            dir=config.out,
            config=to_dict(config),
            id=known,
            resume="allow" if known else None,
        )
        remembered.write_text(self.run.id)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self.run.log(dict(metrics), step=step)

    def close(self) -> None:
        self.run.finish()


class WatchedRunLog(RunLog):
    """Run log that also sends metrics to the configured sinks."""

    def __init__(self, config: TrainConfig, resume_at: int | None) -> None:
        trusted = {"trust_remote_code": True} if config.model.trust_remote_code else {}
        super().__init__(config.out, to_dict(config), config.seed, resume_at, trusted)
        self.sinks: list[Sink] = []
        if config.log.tensorboard:
            self.sinks.append(TensorBoard(self.path / "tensorboard", resume_at))
        if config.log.wandb:
            self.sinks.append(WandB(config, resume_at))

    def log(self, step: int, metrics: Mapping[str, Any]) -> None:
        super().log(step, metrics)
        numbers = {name: float(value) for name, value in metrics.items()}
        for sink in self.sinks:
            sink.log(step, numbers)

    def close(self) -> None:
        super().close()
        for sink in self.sinks:
            sink.close()


class NoLog:
    """Run log of ranks other than 0: a no-op, because rank 0 writes."""

    def log(self, step: int, metrics: Mapping[str, Any]) -> None: ...

    def sample(self, step: int, **fields: Any) -> None: ...

    def probes(self, step: int, answers: Sequence[Mapping[str, Any]]) -> None: ...

    def close(self) -> None: ...


def check_sinks(config: TrainConfig) -> None:
    """Raise ValueError if a configured sink is not installed."""
    for name, install in INSTALL.items():
        if getattr(config.log, name) and find_spec(name) is None:
            raise ValueError(f"log.{name}: {name} is not installed; {install}")
    if config.log.wandb and not logged_in():
        raise ValueError("log.wandb needs a login: run `wandb login`, or set WANDB_MODE=offline and sync later")


def logged_in() -> bool:
    """Return True if W&B needs no login: it is offline or off, or a key is in the environment or in ~/.netrc."""
    if os.environ.get("WANDB_MODE", "online") != "online" or os.environ.get("WANDB_API_KEY"):
        return True
    host = urlsplit(os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")).hostname or ""
    for name in filter(None, (os.environ.get("NETRC"), "~/.netrc", "~/_netrc")):
        with contextlib.suppress(OSError, NetrcParseError):
            if netrc(Path(name).expanduser()).authenticators(host):
                return True
    return False


@contextlib.contextmanager
def traced(config: TrainConfig, step: int, rank: int) -> Iterator[None]:
    """Run the block with a profiler trace if this rollout step is in `profile.steps`. A traced step takes longer."""
    if step not in config.profile.steps:
        yield
        return
    activities = [torch.profiler.ProfilerActivity.CPU]
    if config.device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as profiler:
        yield
    folder = Path(config.out) / "trace"
    folder.mkdir(parents=True, exist_ok=True)
    profiler.export_chrome_trace(str(folder / f"step-{step}-rank-{rank}.json.gz"))
