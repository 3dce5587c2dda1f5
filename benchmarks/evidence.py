"""Evidence of `llmtrain diagnose`: results of the committed studies, as numbers.

    python benchmarks/evidence.py             write packages/common/entrostat/logs/diagnosis/evidence.json

Differences from GRPO come from the compact logs in docs/data/findings, of as many seeds as use the most of them; held
targets and entropies from the tables of docs/leaderboard_lm.md and docs/equal_entropy.md.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from page_tables import read_table
from studies import BASELINE, DOCS, SCORES, STUDIES, Study, results

from entrostat.logs.diagnosis.evidence import PATH
from entrostat.logs.diagnosis.facts import measure

PAGES = ("leaderboard_lm", "equal_entropy")
DIGITS = 5
"""Decimal places of a number."""


def evidence() -> dict[str, Any]:
    """Return the evidence of all studies and pages."""
    studies = {study.name: found for study in STUDIES if (found := of_study(study))}
    return {"made by": "python benchmarks/evidence.py", "studies": studies, "pages": {p: of_page(p) for p in PAGES}}


def of_study(study: Study) -> dict[str, Any] | None:
    """Return the differences of a study's entries from GRPO, of the number of seeds that uses the most logs.

    None if an entry has fewer than two seeds.
    """
    numbers = range(2, study.seeds + 1)
    there = [found for n in numbers if (found := results(replace(study, seeds=n))) and found.is_complete]
    if not there:
        return None
    best = max(there, key=lambda found: len(found.runs) * found.seeds)
    starts = [measure(run.metrics).entropy for run in best.runs[BASELINE]]
    start = sum(one.start for one in starts) / len(starts)
    against = {metric: best.against(metric) for metric in SCORES}
    entries = []
    for one in best.standings:
        if one.entry.name == BASELINE or one.same_as:
            continue
        entry: dict[str, Any] = {"controller": one.entry.controller, "args": dict(one.entry.args)}
        entry["entropy"] = rounded(one.mean("entropy"))
        for metric in SCORES:
            found = against[metric][one.entry.name]
            numbers = {"difference": rounded(found.mean), "half": rounded(found.half)}
            entry[metric] = numbers | {"verdict": found.verdict}
        entries.append(entry)
    config = best.base
    return {
        "page": "docs/findings.md",
        "title": study.title,
        "seeds": best.seeds,
        "steps": config.steps,
        "questions": config.task.test_problems,
        "start": rounded(start),
        "entries": entries,
    }


def of_page(page: str) -> dict[str, Any]:
    """Return the tables "Holding the target" and "All entries" of a leaderboard's page."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    protocol = re.search(r"(\d+) rollout steps .*, seeds (\d+) to (\d+)\.", text)
    assert protocol is not None
    steps, first, last = map(int, protocol.groups())
    held, off = read_table(text, "Holding the target")
    entries, errors = read_table(text, "All entries")
    return {
        "page": f"docs/{page}.md",
        "seeds": last - first + 1,
        "steps": steps,
        "errors": {name: (errors | off)[name] for name in ("entropy", "target error")},
        "held": [{name: row[name] for name in ("controller", "values", "target", "target error")} for row in held],
        "entries": [{name: row[name] for name in ("controller", "values", "entropy")} for row in entries],
    }


def rounded(x: float) -> float:
    return round(float(x), DIGITS)


def written(found: Mapping[str, Any]) -> str:
    """Return the file's text."""
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the file."""
    PATH.write_text(written(evidence()), encoding="utf-8")
    print(PATH)


if __name__ == "__main__":
    main()
