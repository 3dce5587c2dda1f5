"""Studies of docs/findings.md: their rules, protocols and results, read from the compact logs in docs/data/findings."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from entrostat.about.lineup import Entry, asked
from llmtrain.settings.config import TrainConfig
from llmtrain.settings.presets import read_config
from llmtrain.studies import compact_logs
from llmtrain.studies.baseline import ALIKE, Difference, differences
from llmtrain.studies.comparison import Run
from llmtrain.studies.leaderboard_runs import configurations
from llmtrain.studies.standings import Standing, of_another_start, standing

DOCS = Path(__file__).parent.parent / "docs"
BASELINE = "ppo"
"""GRPO: its advantage with PPO's clipped surrogate."""
REWARD, AVERAGE, BEST = SCORES = ("reward", "avg@8", "pass@8")
FEW = 2
"""Upper limit for the seeds of a study's further rules, which may have one."""


@dataclass(frozen=True)
class Study:
    """Rules trained by one protocol, each with the same seeds."""

    name: str
    title: str
    question: str
    flags: str
    """Settings of the runs, as flags of `llmtrain train`."""
    rules: tuple[str, ...]
    """Entries, as `llmtrain leaderboard --only` takes them."""
    drawn: tuple[str, ...]
    """Names of the entries in the picture."""
    seeds: int = 3
    model: tuple[str, ...] = ()
    """Commands that make the model that the runs start from, if they do not warm it up themselves."""
    repeating: str = ""
    """Name of the study of the same rules on problems that repeat, if these are seen once."""
    further: tuple[str, ...] = ()
    """Entries with at most FEW seeds, whose intervals hold together, apart from those of the rules."""

    @property
    def command(self) -> str:
        """Command that trains the runs of the rules and keeps their logs."""
        return self._command(self.rules, self.seeds)

    @property
    def further_command(self) -> str:
        """Command that trains the runs of the further rules and keeps their logs."""
        return self._command(self.further, FEW)

    def _command(self, rules: Sequence[str], seeds: int) -> str:
        quoted = " ".join(shlex.quote(rule) for rule in rules)
        places = f"--out runs/{self.name} --logs docs/data/findings/{self.name}"
        return f"llmtrain leaderboard {self.flags} --seeds {seeds} --workers 2 {places} --only {quoted}"


ANNEALED = "cosine(0.45, 0.15, 480)"
STUDIES = (
    Study(
        name="countdown",
        title="Problems that repeat",
        question="480 rollout steps pass the 2,048 training problems 7.5 times, as long runs on small data sets do.",
        flags="--preset countdown-cpu --steps 480 --target 0.26 --threads 1 --save-every 160 --eval.every 60 "
        "--task.test-problems 512 --log.no-tensorboard",
        rules=(
            "ppo",
            "thermostat mode=anchor target=0.26",
            "kl_ref beta=0.05",
            "thermostat mode=bonus target=0.26",
            f"thermostat mode=anchor target=0.15,0.45,{ANNEALED}",
            f"thermostat mode=bonus target=0.15,0.45,{ANNEALED}",
            "kl_ref beta=0.02,0.1",
            "clip_higher",
            "clip_cov k=0.02",
            "kl_cov k=0.02",
            "entropic auto=True",
            "steer estimator=exact",
        ),
        drawn=(
            "ppo",
            "kl_ref (beta=0.05)",
            "thermostat (mode=anchor, target=0.26)",
            "thermostat (mode=bonus, target=0.26)",
        ),
    ),
    Study(
        name="countdown_wide",
        title="Problems that never repeat",
        question="Each problem is seen once.",
        repeating="countdown",
        flags="--preset countdown-cpu --task.name countdown-wide --task.train-problems 16384 --steps 480 --target 0.26 "
        "--threads 1 --save-every 160 --eval.every 60 --task.test-problems 512 --log.no-tensorboard",
        rules=(
            "ppo",
            "thermostat mode=anchor target=0.26",
            "kl_ref beta=0.05",
            "thermostat mode=bonus target=0.26",
        ),
        drawn=(
            "ppo",
            "kl_ref (beta=0.05)",
            "thermostat (mode=anchor, target=0.26)",
            "thermostat (mode=bonus, target=0.26)",
        ),
    ),
    Study(
        name="constraints",
        title="A pretrained model",
        question="SmolLM2-135M-Instruct as published, asked for short things that a program can check, such as a "
        "sentence of exactly 6 words about rain; each question is seen once.",
        flags="--preset smollm-cpu --model.path models/smollm2-135m --sft.steps 0 --engine.bf16 "
        "--task.name constraints --task.train-problems 1792 --task.test-problems 96 --rollout.prompts 4 "
        "--rollout.max-new-tokens 24 --optim.mini-batch-size 2 --optim.lr 2e-5 --optim.warmup-steps 10 --steps 200 "
        "--eval.every 50 --threads 1 --save-every 50 --checkpoint.keep-last 1 --log.no-tensorboard",
        rules=("ppo", "kl_ref beta=0.05", "thermostat mode=anchor target=0.5x", "thermostat mode=bonus target=0.5x"),
        drawn=(
            "ppo",
            "kl_ref (beta=0.05)",
            "thermostat (mode=anchor, target=0.5x)",
            "thermostat (mode=bonus, target=0.5x)",
        ),
        seeds=5,
        model=("llmtrain model smollm2-135m --out models/smollm2-135m",),
        further=(
            "clip_higher",
            "clip_cov k=0.02",
            "kl_ref beta=0.02",
            "thermostat mode=bonus target=0.25x",
            "thermostat mode=anchor target=0.25x",
            "entropic auto=True target=0.5x",
        ),
    ),
    Study(
        name="smollm2",
        title="A pretrained model after a warm-up",
        question="SmolLM2-135M-Instruct after a warm-up on worked solutions; sums, products and units, each question "
        "seen once. The target is its entropy at the start.",
        flags="--preset smollm-cpu --model.path models/smollm2-arithmetic --engine.bf16 --task.name arithmetic-easy "
        "--task.train-problems 2048 --task.test-problems 129 --steps 100 --target 0.1 --optim.lr 1e-5 "
        "--optim.warmup-steps 10 --threads 1 --save-every 25 --checkpoint.keep-last 1 --eval.every 100 "
        "--log.no-tensorboard",
        rules=("ppo", "kl_ref beta=0.05", "thermostat mode=anchor", "thermostat mode=bonus", "clip_cov k=0.02"),
        drawn=("ppo", "kl_ref (beta=0.05)", "thermostat (mode=anchor)", "thermostat (mode=bonus)"),
        seeds=2,
        model=("llmtrain sft --preset smollm-cpu --threads 1 --out models/smollm2-arithmetic",),
    ),
)


@dataclass(frozen=True)
class Results:
    """Finished entries of a study."""

    study: Study
    base: TrainConfig
    standings: list[Standing]
    runs: Mapping[str, list[Run]]
    """Runs by the name of their entry, one per seed."""
    planned: int
    """Number of entries in the study."""
    seeds: int
    """Number of seeds that count, from seed 0: all of the study's once they are finished."""
    further: list[Standing]
    """Entries of the study's further rules that have a seed, with at most FEW each."""

    @property
    def is_complete(self) -> bool:
        """True if all entries are finished."""
        return len(self.runs) == self.planned

    def against(self, metric: str) -> dict[str, Difference]:
        """Return the differences from the baseline, by name of the entry."""
        return differences(self.standings, BASELINE, metric)

    def further_against(self, metric: str) -> dict[str, Difference]:
        """Return the differences of the further rules from the baseline, by name.

        Their intervals hold together once all of them are there; those of `against` do not count among them.
        """
        found = differences([*self.standings, *self.further], BASELINE, metric, len(self.study.further))
        return {one.entry.name: found[one.entry.name] for one in self.further if not one.same_as}


def baseline_runs(study: Study) -> list[Run]:
    """Return the baseline's finished runs, from seed 0 to the first that is missing."""
    [entry] = asked([BASELINE])
    return finished(study, entry)


def finished(study: Study, entry: Entry, seeds: int | None = None) -> list[Run]:
    """Return the finished runs of an entry, from seed 0 to the first that is missing. seeds: at most; the study's."""
    base = _base(study.flags, study.name)
    found = []
    for config in configurations(base, entry, range(seeds or study.seeds), Path(base.out)):
        path = compact_logs.path_of(DOCS / "data/findings" / study.name, config)
        if not path.exists():
            break
        found.append(compact_logs.load(config, path))
    return found


@cache
def _base(flags: str, name: str) -> TrainConfig:
    return read_config(shlex.split(flags), "benchmarks/findings.py", out=f"runs/{name}")


def results(study: Study) -> Results | None:
    """Return what the compact logs of a study have; None unless the baseline and another entry are finished.

    Until all entries have all seeds, those count that every entry has; if some entry has fewer than two, the entries
    count that have all. Raises ValueError if entries began with different models, as after a warm-up on each of two
    machines.
    """
    entries = asked(study.rules)
    found = {entry.name: finished(study, entry) for entry in entries}
    shared = min(map(len, found.values()))
    seeds = shared if shared > 1 else study.seeds
    runs: dict[str, list[Run]] = {}
    standings: list[Standing] = []
    for entry in entries:
        if len(found[entry.name]) >= seeds:
            standings.append(standing(entry, found[entry.name][:seeds], runs))
            runs[entry.name] = found[entry.name][:seeds]
    if BASELINE not in runs or len(runs) < 2:
        return None
    few = [(entry, finished(study, entry, FEW)) for entry in asked(study.further)]
    further = [standing(entry, told, {}) for entry, told in few if told]
    if apart := of_another_start([*standings, *further]):
        raise ValueError(f"study {study.name}: {', '.join(sorted(apart))} began with another model than the others")
    return Results(study, _base(study.flags, study.name), standings, runs, len(entries), seeds, further)


def cell(mean: float, difference: Difference | None) -> str:
    """Return a mean with its difference from the baseline, bold if it is told apart."""
    if difference is None:
        return f"{mean:.3f}"
    return f"{mean:.3f} ({signed(difference)})"


def signed(difference: Difference) -> str:
    """Return a difference with half its interval, bold if it is told apart from 0."""
    mark = "" if difference.verdict == ALIKE else "**"
    return f"{mark}{difference.mean:+.3f}{mark} ±{difference.half:.3f}"
