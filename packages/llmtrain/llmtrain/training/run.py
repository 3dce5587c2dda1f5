"""A run from its configuration to its final message, as one process or as one of several ranks."""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.machinery import PathFinder
from importlib.metadata import version
from pathlib import Path
from typing import Any

from entrostat.settings.field_types import merge
from entrostat.settings.out_folder import check_own, lock_folder
from entrostat.settings.plain_yaml import load_yaml

from ..process.local_ranks import end_with_parent, is_first, is_worker
from ..process.roll_call import answering, missing
from ..process.text import one_line
from ..settings.config import TrainConfig
from ..settings.renamed import current_keys

STOPPED = ".stopped"
"""File in the folder of a run, written by the first rank that stops with an error."""
REMOVED = {"checkpoints": ("step-*",), "tensorboard": ("events.out.*",)}
"""Folders of a run that a new run removes, and the names that a run writes there."""


@contextmanager
def claim(out: str, what: str = "trains") -> Iterator[None]:
    """Hold the lock of a run or evaluation folder, created if missing, until the block or the process ends.

    what: verb for the error message. Only rank 0 takes the lock. Raises ValueError if another process holds it or the
    folder is not writable.
    """
    if not is_first():
        yield
        return
    with lock_folder(out, what):
        yield


def run_settings(run: str | Path) -> dict[str, Any]:
    """Return config.yaml of a trainer or simulator run. Raise ValueError if there is none."""
    if not (Path(run) / "config.yaml").is_file():
        raise ValueError(f"{run} is not a run: it has no config.yaml")
    return load_yaml(Path(run) / "config.yaml")


def run_config(run: str | Path, trusted: bool = False) -> TrainConfig:
    """Return the configuration that a run was started with. Raise ValueError if its file is empty or invalid.

    trusted: whether Python code in model folders is run. What the file says about that counts for nothing, since a run
    folder may come from elsewhere.
    """
    settings = run_settings(run)
    if not settings:
        raise ValueError(f"{Path(run) / 'config.yaml'} is empty: put back the settings of the run")
    newer = newer_version(Path(run))
    try:
        config = merge(TrainConfig(), current_keys(settings))
    except ValueError as error:
        raise ValueError(f"{error}{f'; {newer}' if newer else ''}") from None
    if newer and is_first():
        print(f"{newer}: what it calls the same may mean something else here", file=sys.stderr)
    return replace(config, model=replace(config.model, trust_remote_code=trusted))


def newer_version(run: Path) -> str:
    """Return a sentence about the version that made a run, if it is newer than this one; else ""."""
    try:
        made = str(json.loads((run / "manifest.json").read_text())["versions"]["entrostat"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    here = version("entrostat")
    as_numbers = [[int(word) for word in re.findall(r"\d+", text)[:3]] for text in (made, here)]
    return f"{run} was made by version {made}, and this is {here}" if as_numbers[0] > as_numbers[1] else ""


def tell_own_names(config: TrainConfig) -> None:
    """Print what a run folder's settings import; only rank 0 does."""
    if is_first():
        print("".join(f"{line}\n" for line in own_names(config)), end="")


def own_names(config: TrainConfig) -> Iterator[str]:
    """Yield a line for each setting that imports a function or class of one's own, with the file it comes from."""
    data, reward = config.data, config.reward
    settings = {"task.name": config.task.name, "data.verifier": data.verifier, "reward.function": reward.function}
    settings |= {"rollout.name": config.rollout.name, "advantage": config.advantage, "controller": config.controller}
    for key, value in settings.items():
        for name in re.findall(r"[A-Za-z_][\w.]*(?=:[A-Za-z_])", value):
            yield f"{key} imports {name} from {_file_of(name)}"


def _file_of(module: str) -> str:
    """Return the file of the package or module that a name belongs to."""
    found = PathFinder.find_spec(module.partition(".")[0], ["", *sys.path])  # where a worker searches
    if found is None:
        return "nowhere: there is no such module"
    return str(Path(found.origin).resolve()) if found.origin else "a package without a file"


def prepare(config: TrainConfig, resuming: bool) -> None:
    """Prepare a run once for all ranks: say what it is; check the checkpoint, or clear the folder and warm up."""
    from ..policy.checkpoint import check_whole, latest, recover, step_of, strays
    from ..policy.precision import slow_bf16
    from .display import WarmUpDisplay, opening
    from .warmup import start_model

    if config.engine.bf16 and (told := slow_bf16(config.device, casts=config.engine.name == "torch")):
        print(told, file=sys.stderr)
    if resuming:
        recover(config.out)
        for name in strays(config.out):
            print(f"ignored: {Path(config.out) / 'checkpoints' / name} is not a checkpoint")
        check_whole(latest(config.out))
        print(opening(config, step_of(latest(config.out))), flush=True)
        return
    print(opening(config), flush=True)
    for name, written in REMOVED.items():
        check_own(Path(config.out) / name, written)
    shutil.rmtree(Path(config.out) / "checkpoints", ignore_errors=True)
    with WarmUpDisplay(config.sft.steps) as display:
        start_model(config, display)


def train_run(config: TrainConfig, resuming: bool = False) -> int:
    """Train and show progress, in one process or as one of several ranks; only rank 0 prepares and prints."""
    from ..policy.checkpoint import last_saved
    from ..process.ranks import Ranks, is_of_another, join

    end_with_parent()
    ranks = join(config.device, config.engine.ddp_timeout) if is_worker() else Ranks()
    try:
        if is_first():
            (Path(config.out) / STOPPED).unlink(missing_ok=True)
            prepare(config, resuming)
        ranks.barrier()
        code, said = train_rank(config, resuming, shown=is_first())
        if code > 128:
            ranks.barrier()  # a signal stopped all of them after the same step
    except Exception as error:
        if not is_of_another(error):
            if is_first_to_stop(config.out):
                raise
            return 1
        code, said = 1, f"error: another rank stopped: {one_line(error)}; {last_saved(config.out)}"
    if is_first_to_stop(config.out) if code == 1 else is_first():
        say(code, said)
    return code


def is_first_to_stop(out: str) -> bool:
    """Return True if no rank of this run has stopped before; later ranks then need not print an error."""
    try:
        (Path(out) / STOPPED).touch(exist_ok=False)
    except FileExistsError:
        return False
    except OSError:  # perhaps a full disk
        return True
    return True


def train_rank(config: TrainConfig, resuming: bool, shown: bool = False) -> tuple[int, str]:
    """Train as one rank of a prepared run, on any machine.

    Returns the exit code and the final message: 0, 1 if training had to stop, 128 + n after signal n (130: Ctrl-C).
    """
    from ..policy.checkpoint import last_saved

    rank, size = (int(os.environ.get(name, usual)) for name, usual in (("RANK", 0), ("WORLD_SIZE", 1)))
    with answering(config.out, rank, size):
        try:
            return _train(config, resuming, shown)
        except Exception as error:
            late = missing(error, config.out, rank, size, config.engine.ddp_timeout)
            if not late:
                raise
            return 1, f"error: {late}; {last_saved(config.out)}"


def _train(config: TrainConfig, resuming: bool, shown: bool) -> tuple[int, str]:
    from contextlib import nullcontext

    from ..policy.checkpoint import last_saved
    from .display import TrainDisplay
    from .guard import RollBackError
    from .trainer import Trainer, TrainingStoppedError
    from .warmup import start_model

    trainer = Trainer(config, config.out if resuming else start_model(config), resume=resuming)
    if shown:
        print("".join(f"{line}\n" for line in trainer.task.skipped), end="")
    while True:
        display = (
            TrainDisplay(config.controller, config.steps, trainer.step, controller=trainer.controller)
            if shown
            else nullcontext(unseen)
        )
        try:
            with display as report:
                trainer.run(report)
        except TrainingStoppedError as error:
            return 1, f"error: {error}"
        except RollBackError as error:
            said = f"{error}; {last_saved(config.out)}"
        else:
            break
        times = trainer.roll_backs + 1
        if times > config.guard.roll_backs:
            return 1, f"error: {said}; guard.roll_backs {config.guard.roll_backs} are used up"
        del trainer  # and its memory
        trainer = Trainer(config, config.out, resume=True, roll_backs=times)
        if shown:
            print(f"guard: {said}; rolled back, learning rate × {config.guard.lr_factor**times:g}", file=sys.stderr)
    if trainer.interrupted:
        return (
            128 + trainer.stopped_by,
            f"stopped after step {trainer.step}; continue with: llmtrain resume {config.out}",
        )
    return 0, f"done: {config.out}"


def say(code: int, said: str) -> int:
    """Print the final message of a run and return its exit code."""
    print(said, file=sys.stderr if code == 1 else sys.stdout)
    return code


def unseen(step: int, metrics: dict[str, float]) -> None:
    """Ignore the metrics of a step: only rank 0 displays them."""
