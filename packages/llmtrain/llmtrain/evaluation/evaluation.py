"""Complete evaluation: model, questions, sampling, and the folder with the results.

Evaluation ► benchmarks ► responses.jsonl ► records ► results.json, results.md, figures

evaluation.json    identity of the evaluation; a second run with the same identity resumes the first
responses.jsonl    one line per response
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

from entrostat.logs.runlog import manifest

from ..data import Question
from ..data.prompts import encode_all, within
from ..process.ranks import Ranks
from ..rollout.hf import stop_ids
from ..settings.sampling import Sampling
from ..verifiers import Verifier, judged
from . import report
from .benchmark import RESPONSES, Benchmark, Unit, by_question, sample, units
from .correlations import Correlation
from .eval_progress import SamplingDisplay
from .records import Answered, Record, measure
from .statistics import prompt_entropy
from .subject import Subject

IDENTITY = "evaluation.json"
BENCHMARKS = "benchmarks"
"""Key of the benchmarks in evaluation.json; nested so that no benchmark name can hide a setting."""
ANOTHER = "choose another --out, or pass --overwrite"
MODEL_FILES = ("*.safetensors", "*.bin", "config.json", "tokenizer.json")
"""Files of a model folder that determine its responses."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Evaluation that `llmtrain eval` runs after it has parsed its arguments."""

    subject: Subject
    path: Path
    """Model folder."""
    benchmarks: Sequence[Benchmark]
    verifier: str
    start_verifier: Callable[[], Verifier]
    answer_after: str = ""
    """Mark before the answer, which `start_verifier` knows."""
    timeout: float = 0.0
    """Verifier's time limit for a response (seconds); 0 if the verifier has no limit."""
    out: Path
    sequences: int = 256
    """Approximate number of responses that are sampled together."""
    seed: int = 0
    start: Callable[[], Subject] | None = None
    """Function that loads the start model (before training)."""
    ks: tuple[int, ...] = ()
    """Values of k for pass@k and maj@k."""
    correlations: Sequence[Correlation] = ()
    """Correlations over the training run of the model."""

    def run(self, ranks: Ranks | None = None, overwrite: bool = False) -> list[Record]:
        """Sample, measure, and write everything into `out`. Return the records, on rank 0 only.

        Raises:
            ValueError: if `out` holds another evaluation, or responses without evaluation.json, and not `overwrite`.
        """
        ranks = ranks or Ranks()
        responses = self.sampled(ranks, overwrite)
        if ranks.rank:
            return []
        records = self._measure(responses)
        about = {"model": str(self.path), "verifier": self.verifier, "manifest": manifest(self.seed)}
        report.write(self.out, about, f"Evaluation of {self.path}", records, self.correlations, self.ks)
        from .figures import draw

        draw(records, self.out)
        return records

    def sampled(self, ranks: Ranks | None = None, overwrite: bool = False) -> Path:
        """Sample and judge what is missing in `out`; return the path of responses.jsonl. Raises ValueError as `run`."""
        ranks = ranks or Ranks()
        if ranks.rank == 0:
            self._claim(overwrite)
        ranks.barrier()
        try:
            return self._sample(ranks)
        finally:
            self.subject.close()

    def _sample(self, ranks: Ranks) -> Path:
        plan = units(self.benchmarks, self.sequences)
        shown = SamplingDisplay(sum(unit.lines for unit in plan)) if ranks.rank == 0 else nullcontext(_unseen)
        with self.start_verifier() as verifier, shown as display:

            def verify(questions: Sequence[Question], responses: Sequence[str]) -> list:
                return judged(verifier, questions, responses)

            path = sample(self.subject, plan, verify, self.out, seed=self.seed, ranks=ranks, report=display)
        if lost := ", ".join(f"{count} {kind}" for kind, count in sorted(verifier.failures.items())):
            print(f"checks that did not finish, whose responses count as wrong: {lost}", file=sys.stderr)
            print("".join(f"the first of them:\n{error.trace}\n" for error in verifier.errors), end="", file=sys.stderr)
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
        """Return everything that responses and verdicts depend on, as JSON values."""
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
        found |= {"answer_after": self.answer_after} if self.answer_after else {}
        return json.loads(json.dumps(found))

    def _claim(self, overwrite: bool) -> None:
        """Claim `out` for this evaluation. Raises ValueError if it belongs to another one."""
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
            raise ValueError(f"{responses} cannot be resumed because {mark} is missing: {ANOTHER}")
        part = mark.with_name(f"{IDENTITY}.part")
        part.write_text(json.dumps(now, indent=2) + "\n")
        os.replace(part, mark)


def _read(mark: Path, now: dict[str, Any]) -> dict[str, Any]:
    """Return the written identity. Earlier versions stored benchmarks at the top level, under keys that `now` lacks."""
    try:
        then = dict(json.loads(mark.read_text()))
        if BENCHMARKS in then:
            return then | {BENCHMARKS: dict(then[BENCHMARKS])}
    except (TypeError, ValueError):
        raise ValueError(f"{mark} is not valid: {ANOTHER}") from None
    settings = {key: value for key, value in then.items() if key in now}
    return settings | {BENCHMARKS: {key: value for key, value in then.items() if key not in now}}


def _differing(then: dict[str, Any], now: dict[str, Any]) -> str:
    """Return the first setting or benchmark that differs between two identities, or "". Benchmark order counts."""
    then, now = dict(then), dict(now)
    before, benchmarks = then.pop(BENCHMARKS), now.pop(BENCHMARKS)
    for a, b in ((now, then), (benchmarks, before)):
        for key in [*a, *b]:
            if a.get(key) != b.get(key):
                return key
    return "" if list(benchmarks) == list(before) else "order of benchmarks"


def _digest(benchmark: Benchmark) -> str:
    """Return a digest of the prompts and ground truths."""
    told = json.dumps([list(benchmark.prompt_ids), [str(question.ground_truth) for question in benchmark.questions]])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _unseen(unit: Unit, correct: int, resumed: bool) -> None:
    """No-op: only rank 0 shows progress."""


def benchmarks_of(
    subject: Subject,
    questions: Iterable[Question],
    sampling_of: Callable[[str], Sampling],
    *,
    max_prompt_length: int,
    limit: int = 0,
) -> tuple[list[Benchmark], list[str]]:
    """Return the questions by source, in order of appearance, and one message per source with skipped questions.

    sampling_of: returns the sampling of a source. max_prompt_length: in tokens; questions with longer prompts are
    skipped. limit: number of questions to take from the start of each source; 0 takes all.

    Raises:
        ValueError: if no question is left.
    """
    by_source: dict[str, list[Question]] = {}
    for question in questions:
        by_source.setdefault(question.source, []).append(question)
    found, told = [], []
    for source, all_of_it in by_source.items():
        kept = within(subject.tokenizer, all_of_it[: limit or None], max_prompt_length)
        if long := len(all_of_it[: limit or None]) - len(kept):
            told.append(f"{source}: skipped {long} questions whose prompts have more than {max_prompt_length} tokens")
        if kept:
            ids = encode_all(subject.tokenizer, [question.prompt for question in kept])
            found.append(Benchmark(source, kept, ids, sampling_of(source)))
    if not found:
        raise ValueError(f"no question to evaluate on is left{': ' + told[0] if told else ''}")
    return found, told
