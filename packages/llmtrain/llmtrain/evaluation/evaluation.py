"""A whole evaluation: which model on which questions, what is sampled, and the folder with what came out.

Evaluation ► benchmarks ► responses.jsonl ► records ► results.json, results.md, figures

evaluation.json    what is evaluated; a second evaluation of the same goes on where the first stopped
responses.jsonl    a line a response
results.json, results.md, *.png
"""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from entrostat.runlog import manifest

from ..data import Question
from ..data.prompts import encode_all, within
from ..process.ranks import Ranks
from ..rollout import stop_ids
from ..settings.sampling import Sampling
from ..verifiers import Verifier
from . import report
from .benchmark import RESPONSES, Benchmark, Unit, by_question, sample, units
from .correlations import Correlation
from .eval_progress import SamplingDisplay
from .records import Answered, Record, measure
from .statistics import prompt_entropy
from .subject import Subject

IDENTITY = "evaluation.json"
BENCHMARKS = "benchmarks"
"""Key of the benchmarks within it; whatever they are called, they hide no setting."""
ANOTHER = "choose another --out, or --overwrite it"
MODEL_FILES = ("*.safetensors", "*.bin", "config.json", "tokenizer.json")
"""What a model folder answers with."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What `llmtrain eval` does, once its arguments are understood."""

    subject: Subject
    path: Path
    """Folder of the model."""
    benchmarks: Sequence[Benchmark]
    verifier: str
    start_verifier: Callable[[], Verifier]
    timeout: float = 0.0
    """Seconds that the verifier has for a response; 0 for one that knows no limit."""
    out: Path
    sequences: int = 256
    """Responses that are sampled together, about."""
    seed: int = 0
    start: Callable[[], Subject] | None = None
    """Loads the model before training."""
    ks: tuple[int, ...] = ()
    """k of pass@k and maj@k."""
    correlations: Sequence[Correlation] = ()
    """Of the run that the model is of."""

    def run(self, ranks: Ranks | None = None, overwrite: bool = False) -> list[Record]:
        """Sample, measure, and write everything into `out`. The records, of the first rank only.

        Raises:
            ValueError: when `out` holds another evaluation, or responses of none, and `overwrite` is off.
        """
        ranks = ranks or Ranks()
        if ranks.rank == 0:
            self._claim(overwrite)
        ranks.barrier()
        try:
            responses = self._sample(ranks)
        finally:
            self.subject.close()
        if ranks.rank:
            return []
        records = self._measure(responses)
        about = {"model": str(self.path), "verifier": self.verifier, "manifest": manifest(self.seed)}
        report.write(self.out, about, f"Evaluation of {self.path}", records, self.correlations, self.ks)
        from .figures import draw

        draw(records, self.out)
        return records

    def _sample(self, ranks: Ranks) -> Path:
        plan = units(self.benchmarks, self.sequences)
        shown = SamplingDisplay(sum(unit.lines for unit in plan)) if ranks.rank == 0 else nullcontext(_unseen)
        with self.start_verifier() as verifier, shown as display:

            def verify(questions: Sequence[Question], responses: Sequence[str]) -> list:
                return verifier(responses, [question.ground_truth for question in questions])

            path = sample(self.subject, plan, verify, self.out, seed=self.seed, ranks=ranks, report=display)
        if lost := ", ".join(f"{count} {kind}" for kind, count in sorted(verifier.failures.items())):
            print(f"checks without an answer, whose responses count as wrong: {lost}", file=sys.stderr)
        return path

    def _measure(self, responses: Path) -> list[Record]:
        before = self.start() if self.start else None
        answered: dict[str, list[Answered]] = {}
        for lines in by_question(responses):
            answered.setdefault(lines[0]["source"], []).append(Answered.of(lines))
        return [
            measure(
                one.source,
                one.sampling,
                answered[one.source],
                prompt_entropy(self.subject.policy, one.prompt_ids),
                prompt_entropy(before.policy, one.prompt_ids) if before else None,
                self.ks,
                self.seed,
            )
            for one in self.benchmarks
        ]

    def identity(self) -> dict[str, Any]:
        """Everything that responses and verdicts depend on, as JSON holds it."""
        files = sorted(path for pattern in MODEL_FILES for path in self.path.glob(pattern))
        model, tokenizer = self.subject.model, self.subject.tokenizer
        found = {
            "model": str(self.path),
            "files": [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files],
            "device": model.device.type,
            "dtype": str(model.dtype).removeprefix("torch."),
            "stop_token_ids": stop_ids(model, tokenizer, self.subject.stop_token_ids),
            "verifier": self.verifier,
            "timeout": self.timeout,
            "rollout": self.subject.rollout,
            "seed": self.seed,
            "batch_size": self.sequences,
            BENCHMARKS: {
                one.source: {"questions": len(one.questions), "prompts": _digest(one), **asdict(one.sampling)}
                for one in self.benchmarks
            },
        }
        return json.loads(json.dumps(found))

    def _claim(self, overwrite: bool) -> None:
        """Make `out` the folder of this evaluation."""
        self.out.mkdir(parents=True, exist_ok=True)
        mark, responses, now = self.out / IDENTITY, self.out / RESPONSES, self.identity()
        if overwrite:
            for old in (responses, mark):
                old.unlink(missing_ok=True)
        if mark.is_file():
            if differing := _differing(_read(mark, now), now):
                raise ValueError(
                    f"{self.out} holds an evaluation with other settings ({differing!r} differs): {ANOTHER}"
                )
        elif responses.exists():
            raise ValueError(f"{responses} is of no evaluation that can go on, for there is no {mark}: {ANOTHER}")
        part = mark.with_name(f"{IDENTITY}.part")
        part.write_text(json.dumps(now, indent=2) + "\n")
        os.replace(part, mark)


def _read(mark: Path, now: dict[str, Any]) -> dict[str, Any]:
    """An identity as it was written. Earlier ones had benchmarks beside the settings, of which `now` has the names."""
    try:
        then = dict(json.loads(mark.read_text()))
        if BENCHMARKS in then:
            return then | {BENCHMARKS: dict(then[BENCHMARKS])}
    except (TypeError, ValueError):
        raise ValueError(f"{mark} is not whole: {ANOTHER}") from None
    settings = {key: value for key, value in then.items() if key in now}
    return settings | {BENCHMARKS: {key: value for key, value in then.items() if key not in now}}


def _differing(then: dict[str, Any], now: dict[str, Any]) -> str:
    """The first setting or benchmark in which two identities differ, "" for none. Benchmarks come in their order."""
    then, now = dict(then), dict(now)
    before, benchmarks = then.pop(BENCHMARKS), now.pop(BENCHMARKS)
    for a, b in ((now, then), (benchmarks, before)):
        for key in [*a, *b]:
            if a.get(key) != b.get(key):
                return key
    return "" if list(benchmarks) == list(before) else "order of benchmarks"


def _digest(benchmark: Benchmark) -> str:
    """A name for prompts and ground truths."""
    told = json.dumps([list(benchmark.prompt_ids), [str(question.ground_truth) for question in benchmark.questions]])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _unseen(unit: Unit, correct: int, resumed: bool) -> None:
    """What ranks show that do not speak."""


def benchmarks_of(
    subject: Subject,
    questions: Iterable[Question],
    sampling_of: Callable[[str], Sampling],
    *,
    max_prompt_length: int,
    limit: int = 0,
) -> tuple[list[Benchmark], list[str]]:
    """The questions by source, in order of appearance, and what was left out, a line each.

    sampling_of: how a source is sampled. max_prompt_length: in tokens; questions with longer prompts are left out.
    limit: the first so many questions of each source; 0 takes all.

    Raises:
        ValueError: when no question is left.
    """
    by_source: dict[str, list[Question]] = {}
    for question in questions:
        by_source.setdefault(question.source, []).append(question)
    found, told = [], []
    for source, all_of_it in by_source.items():
        kept = within(subject.tokenizer, all_of_it[: limit or None], max_prompt_length)
        if long := len(all_of_it[: limit or None]) - len(kept):
            told.append(f"{source}: {long} questions left out, their prompts have more than {max_prompt_length} tokens")
        if kept:
            ids = encode_all(subject.tokenizer, [question.prompt for question in kept])
            found.append(Benchmark(source, kept, ids, sampling_of(source)))
    if not found:
        raise ValueError(f"no question to evaluate on is left{': ' + told[0] if told else ''}")
    return found, told
