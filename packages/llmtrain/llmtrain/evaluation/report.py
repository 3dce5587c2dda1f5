"""results.json and results.md of an evaluation. Torch-free."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..settings.sampling import Sampling
from .correlations import Correlation
from .outcomes import Interval
from .records import Record

Columns = list[tuple[str, Callable[[Record], str]]]
"""Headings of a table, and what stands under them for a record."""
MISSING = "–"
"""Text for a missing number."""
NOTES = """\
- avg@n: share of correct responses. pass@k: unbiased. maj@k: accuracy of the most frequent answer. [low, high]: 95%
  bootstrap interval over questions.
- length: tokens, end token included. finished: responses that ended with a stop token.
- entropy, prompt entropy, AUROC, ECE: from the model's own distribution at temperature 1 (nats). ratio: prompt entropy
  relative to the start model. ρ: Spearman correlation of a question's prompt entropy and accuracy.
- n-grams: share of unique n-grams in a question's responses, n = 1 to 4. Self-BLEU: each response against the other
  responses to the question. Both depend on the number of samples.
- reflective: phrases such as "wait" per response, and the share of responses with such a phrase.
- AUROC, gap and ECE: how well the mean log-probability per token separates right from wrong responses.
"""


def table(records: Sequence[Record], ks: Sequence[int] = ()) -> tuple[list[str], list[list[str]]]:
    """Return the headings and one row per record of all numbers. ks: as in `tables`."""
    (_, (headings, rows)), *others = tables(records, ks)
    return (
        headings + [name for _, (names, _) in others for name in names[1:]],
        [row + [cell for _, (_, cells) in others for cell in cells[at][1:]] for at, row in enumerate(rows)],
    )


def tables(records: Sequence[Record], ks: Sequence[int] = ()) -> list[tuple[str, tuple[list[str], list[list[str]]]]]:
    """Return three tables, each with its title, headings and one row per record, which begins with the benchmark.

    ks: values of k for pass@k and maj@k; each benchmark's n if empty.
    """
    scores: Columns = [
        ("questions", lambda r: str(r.questions)),
        ("samples", lambda r: _sampling(r.sampling)),
        ("avg@n", lambda r: _interval(r.avg)),
    ]
    for k in ks or [None]:  # type: ignore[list-item]
        scores += [
            (f"pass@{k or 'n'}", lambda r, k=k: _interval(r.pass_at.get(k or r.samples))),  # type: ignore[misc]
            (f"maj@{k or 'n'}", lambda r, k=k: _interval(r.maj_at.get(k or r.samples))),  # type: ignore[misc]
        ]
    responses: Columns = [
        ("length", lambda r: f"{r.length['mean']:.0f}"),
        ("finished", lambda r: f"{r.finished:.1%}"),
        ("n-grams", lambda r: number(r.ngram_diversity.mean)),
        ("Self-BLEU", lambda r: number(r.self_bleu.mean)),
        ("reflective", lambda r: f"{r.reflective:.2f} ({r.reflective_share:.0%})"),
    ]
    policy: Columns = [
        ("entropy", lambda r: number(r.entropy)),
        ("prompt entropy", lambda r: number(r.prompt_entropy.mean)),
        ("ratio", lambda r: number(r.prompt_entropy_ratio)),
        ("ρ", lambda r: number(r.prompt_entropy_spearman, "+.2f")),
        ("AUROC", lambda r: number(r.calibration.auroc)),
        ("gap", lambda r: number(r.calibration.gap, "+.3f")),
        ("ECE", lambda r: number(r.calibration.ece)),
    ]
    return [
        (
            title,
            (
                ["benchmark", *(name for name, _ in columns)],
                [[record.source, *(cell(record) for _, cell in columns)] for record in records],
            ),
        )
        for title, columns in (("Scores", scores), ("Responses", responses), ("Entropy and certainty", policy))
    ]


def number(x: float, form: str = ".3f") -> str:
    return MISSING if math.isnan(x) else format(x, form)


def _interval(x: Interval | None) -> str:
    return MISSING if x is None or math.isnan(x.mean) else f"{x.mean:.1%} [{x.low:.1%}, {x.high:.1%}]"


def _sampling(sampling: Sampling) -> str:
    if sampling.temperature == 0:
        return f"{sampling.samples}, greedy"
    nucleus = f", top-p {sampling.top_p:g}" if sampling.top_p < 1 else ""
    return f"{sampling.samples}, T {sampling.temperature:g}{nucleus}"


def markdown(
    title: str, records: Sequence[Record], correlations: Sequence[Correlation] = (), ks: Sequence[int] = ()
) -> str:
    """Return the text of results.md."""
    difficulty = [
        [record.source, f"{group.low:g} to {group.high:g}", group.questions, group.tokens, number(group.covariance)]
        for record in records
        for group in record.difficulty
        if group.questions
    ]
    parts = [f"# {title}"]
    for name, grid in tables(records, ks):
        parts += [f"## {name}", _grid(*grid)]
    parts += ["## What the columns mean", NOTES.rstrip()]
    reasons = [f"- {r.source}: {r.calibration.reason}, so no AUROC." for r in records if r.calibration.reason]
    parts += ["\n".join(reasons)] if reasons else []
    if difficulty:
        heading = ["benchmark", "accuracy of the question", "questions", "tokens", "Cov"]
        parts += ["## Covariance of log-probability and advantage by difficulty", _grid(heading, difficulty)]
    if correlations:
        rows = [[c.source or "all", c.score, c.points, number(c.spearman, "+.2f")] for c in correlations]
        parts += ["## Entropy and scores over the evaluations of the run"]
        parts += [_grid(["benchmark", "score", "evaluations", "Spearman's ρ with entropy"], rows)]
    return "\n\n".join(parts) + "\n"


def _grid(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def plain(x: Any) -> Any:
    """Return `x` as JSON values: records and intervals become objects, NaN becomes null."""
    if isinstance(x, Record | Correlation):
        return plain({name: getattr(x, name) for name in x.__dataclass_fields__})
    if isinstance(x, Interval):
        return plain(x._asdict())
    if hasattr(x, "__dataclass_fields__"):
        return plain(asdict(x))
    if isinstance(x, dict):
        return {str(key): plain(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [plain(value) for value in x]
    return None if isinstance(x, float) and not math.isfinite(x) else x


def write(
    out: Path,
    about: dict[str, Any],
    title: str,
    records: Sequence[Record],
    correlations: Sequence[Correlation] = (),
    ks: Sequence[int] = (),
) -> None:
    """Write results.json (`about`, records, correlations) and results.md into `out`."""
    found = {**about, "benchmarks": plain(list(records)), "correlations": plain(list(correlations))}
    (out / "results.json").write_text(json.dumps(found, indent=2) + "\n")
    (out / "results.md").write_text(markdown(title, records, correlations, ks))
