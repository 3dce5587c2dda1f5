"""Runs of a leaderboard: one folder for each entry and seed. Finished runs are kept, others resume."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

from entrostat.about.lineup import Entry
from entrostat.logs.runlog import read_metrics
from entrostat.settings.plain_yaml import dump_yaml

from ..policy.checkpoint import checkpoints, step_of
from ..process.local_ranks import PARENT
from ..process.progress import Bar
from ..process.stop_signals import passing_on
from ..settings.config import TrainConfig
from ..settings.nested import to_dict
from ..training.run import run_config
from . import compact_logs
from .comparison import Run

Failures = dict[str, str]
"""Errors of failed runs, by run folder."""


def configurations(base: TrainConfig, entry: Entry, seeds: Sequence[int], out: Path) -> list[TrainConfig]:
    """Return an entry's runs, one per seed: seeds change sampled responses and data order, not the start model."""
    folder = out / re.sub(r"[^\w.=-]+", "_", entry.name).strip("_")
    own_target = any(key.rpartition(".")[2] == "target" for key in entry.args)
    return [
        replace(
            base,
            out=str(folder / str(seed)),
            seed=seed,
            controller=entry.controller,
            controller_args=dict(entry.args),
            target=base.target if entry.has_target and not own_target else None,
            advantage=entry.advantage or base.advantage,
            overwrite=False,
        )
        for seed in seeds
    ]


def done(config: TrainConfig) -> int:
    """Return the rollout steps of a run's newest checkpoint. Raises ValueError if the folder has another run."""
    folder = Path(config.out)
    if not (folder / "config.yaml").exists():
        return 0
    trusted = config.model.trust_remote_code
    if replace(run_config(folder, trusted), out=config.out, overwrite=False) != config:
        raise ValueError(f"{folder} holds a run with other settings: choose another --out, or remove it")
    found = checkpoints(folder)
    return step_of(found[-1]) if found else 0


def ended(config: TrainConfig) -> bool:
    """Return True if a run is finished, including its last evaluation, which follows the last checkpoint."""
    if done(config) < config.steps:
        return False
    evaluated = [line["step"] for line in read_metrics(config.out) if f"eval/avg@{config.eval.k}" in line]
    return not config.eval.every or config.steps in evaluated


def train_all(configs: Sequence[TrainConfig], workers: int, logs: Path | None) -> tuple[dict[str, Run], Failures]:
    """Return all runs by run folder, trained or read from compact logs, and the errors of those that fail.

    logs: folder of compact logs; a run that has one there is not trained, and one that finishes is written there, also
    if training is interrupted. None keeps none.
    """
    if logs is None:
        failures = run_all(configs, workers)
        return {config.out: Run.read(config.out) for config in configs if config.out not in failures}, failures
    left = [config for config in configs if not compact_logs.path_of(logs, config).exists()]
    try:
        failures = run_all(left, workers)
    finally:
        for config in left:
            if ended(config):
                compact_logs.save(config, compact_logs.path_of(logs, config))
    found = [config for config in configs if config.out not in failures]
    return {config.out: compact_logs.load(config, compact_logs.path_of(logs, config)) for config in found}, failures


def run_all(configs: Sequence[TrainConfig], workers: int) -> Failures:
    """Train the unfinished runs, `workers` at a time, each in its own process with output in <run>.log.

    A signal that stops this process reaches the runs, which save what they have; then it ends here too.
    """
    left = [config for config in configs if not ended(config)]
    if left:
        warm_up(left[0])
    failures: Failures = {}
    running: set[subprocess.Popen[bytes]] = set()
    with (
        passing_on(running) as arrived,
        Bar("leaderboard", len(configs), len(configs) - len(left)) as bar,
        ThreadPoolExecutor(workers) as pool,
    ):
        tasks = {pool.submit(_run, config, running, arrived): config for config in left}
        try:
            for task in as_completed(tasks):
                said = task.result()
                if arrived:
                    continue
                if said:
                    failures[tasks[task].out] = said
                bar.show(advance=1)
                bar.say(f"{tasks[task].out}: {said or 'done'}")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if arrived:
        raise SystemExit(128 + arrived[0])
    return failures


def warm_up(config: TrainConfig) -> None:
    """Prepare the start model of all runs, so that parallel runs do not each warm it up."""
    from ..training.display import WarmUpDisplay
    from ..training.warmup import start_model

    with WarmUpDisplay(config.sft.steps) as display:
        start_model(config, display)


def _run(config: TrainConfig, running: set[subprocess.Popen[bytes]], arrived: Sequence[int]) -> str:
    """Train or resume a run, unless a signal has arrived, and return its error, or "" if it finished."""
    if arrived:
        return ""
    folder = Path(config.out)
    folder.parent.mkdir(parents=True, exist_ok=True)
    asked = folder.with_suffix(".yaml")
    asked.write_text(dump_yaml(to_dict(config)))
    begun = bool(done(config))
    again = ["--overwrite"] if (folder / "config.yaml").exists() else []
    command = ["resume", str(folder)] if begun else ["train", "--config", str(asked), *again]
    program = [sys.executable, "-m", "llmtrain", *command]
    ours = os.environ | {PARENT: str(os.getpid())}  # the run stops when this process ends
    with folder.with_suffix(".log").open("w") as log:
        run = subprocess.Popen(program, stdout=log, stderr=subprocess.STDOUT, env=ours, start_new_session=True)
        running.add(run)
        for number in arrived:  # while it was being started: it has nothing to save yet
            run.send_signal(number)
        code = run.wait()
        running.discard(run)
    if code == 0:
        return ""
    lines = folder.with_suffix(".log").read_text().strip().splitlines()
    return lines[-1] if lines else f"ended with {code}"
