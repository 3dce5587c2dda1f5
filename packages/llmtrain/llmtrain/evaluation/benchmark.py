"""Sampling of benchmarks: each batch is written to responses.jsonl at once, so an interrupted evaluation can resume.

    benchmarks ► batches of questions ► sample ► verify ► statistics ► gather ► responses.jsonl, n lines per question

Batches and their seeds depend only on the settings, and lines are written in order. Complete batches in the file are
not sampled again; an incomplete one is. So a resumed evaluation writes the same file as an uninterrupted one, and the
number of ranks changes only the time.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from entrostat.numbers.draws import generator_seed

from ..data import Question
from ..process.ranks import Ranks
from ..settings.sampling import Sampling
from .answers import Verify, answers
from .statistics import response_means
from .subject import Subject

RESPONSES = "responses.jsonl"


@dataclass(frozen=True)
class Benchmark:
    """Questions of one source and their sampling settings."""

    source: str
    questions: Sequence[Question]
    prompt_ids: Sequence[list[int]]
    """Token ids of each question's prompt"""
    sampling: Sampling


class Unit(NamedTuple):
    """Batch of questions that are sampled together with one seed."""

    benchmark: Benchmark
    number: int
    """Index of the batch within its benchmark."""
    start: int
    """Index of the first question."""
    stop: int
    """Index after the last question."""

    @property
    def lines(self) -> int:
        return (self.stop - self.start) * self.benchmark.sampling.samples


def units(benchmarks: Sequence[Benchmark], sequences: int) -> list[Unit]:
    """Return all batches, each of about `sequences` sequences and at least one question."""
    found = []
    for one in benchmarks:
        size = max(1, sequences // one.sampling.samples)
        starts = range(0, len(one.questions), size)
        found += [Unit(one, i, start, min(start + size, len(one.questions))) for i, start in enumerate(starts)]
    return found


def whole_units(path: Path, plan: Sequence[Unit]) -> int:
    """Return the number of complete batches in the file, and truncate the file after them."""
    done = end = 0
    with path.open("a+b") as file:
        file.seek(0)
        for unit in plan:
            lines = list(islice(file, unit.lines))
            if len(lines) < unit.lines or not lines[-1].endswith(b"\n"):
                break
            done, end = done + 1, end + sum(map(len, lines))
        file.truncate(end)
    return done


def sample(
    subject: Subject,
    plan: Sequence[Unit],
    verify: Verify,
    out: Path,
    *,
    seed: int = 0,
    ranks: Ranks | None = None,
    report: Callable[[Unit, int, bool], None] = lambda unit, correct, resumed: None,
) -> Path:
    """Sample the missing batches of the plan into `out`/responses.jsonl, and return its path.

    report: called for each batch with its number of correct responses and whether it was already in the file.
    All ranks make this call and share the questions of each batch; only rank 0 writes.
    """
    ranks = ranks or Ranks()
    out.mkdir(parents=True, exist_ok=True)
    path = out / RESPONSES
    done = ranks.most(whole_units(path, plan) if ranks.rank == 0 else 0)
    for unit in plan[:done]:
        report(unit, 0, True)
    with path.open("a") as file:
        for unit in plan[done:]:
            lines = ranks.gather(_lines(subject, unit, verify, seed, ranks))
            lines.sort(key=lambda line: (line["question"], line["sample"]))
            if ranks.rank == 0:
                file.writelines(json.dumps(line) + "\n" for line in lines)
                file.flush()
            report(unit, sum(line["correct"] for line in lines), False)
    return path


def _lines(subject: Subject, unit: Unit, verify: Verify, seed: int, ranks: Ranks) -> list[dict[str, Any]]:
    """Return the lines of this rank's questions."""
    one, n = unit.benchmark, unit.benchmark.sampling.samples
    questions = one.questions[unit.start : unit.stop]
    mine = list(range(ranks.rank, len(questions), ranks.size))
    drawn = generator_seed("evaluation", seed, one.source, unit.number)
    rollouts = subject.sample(one.prompt_ids[unit.start : unit.stop], one.sampling, drawn, mine)
    lines = answers(rollouts, response_means(subject.policy, rollouts), questions, subject.tokenizer, verify)
    owners = rollouts.prompt_index.tolist()
    return [
        {"source": one.source, "question": unit.start + owner, "sample": i % n, **line}
        for i, (owner, line) in enumerate(zip(owners, lines, strict=True))
    ]


def by_question(path: Path) -> Iterator[list[dict[str, Any]]]:
    """Yield the lines of each question, in file order."""
    group: list[dict[str, Any]] = []
    with path.open() as file:
        for text in file:
            line = json.loads(text)
            if group and (line["source"], line["question"]) != (group[0]["source"], group[0]["question"]):
                yield group
                group = []
            group.append(line)
    if group:
        yield group
