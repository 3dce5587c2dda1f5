"""Public logs of runs of others: how often they collapse, explode and die, and whether `llmtrain diagnose` sees it.

    python -m benchmarks.field [--logs runs/field] [--write]

docs/data/field.json has the address of each log, what two readers saw in it, and what the tool said at first sight and
when it last read the log. Logs that --logs lacks are fetched there and compared with their checksum; none is committed.
--write writes docs/field.md; of a log that cannot be fetched the last words stand, and the law of the page.
"""

import argparse
import hashlib
import json
import re
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from scipy.stats import binomtest

from entrostat.logs.diagnosis.facts import Facts, measure
from entrostat.logs.diagnosis.signal import NO_SIGNAL
from entrostat.logs.foreign.foreign_runs import read_path

ROOT = Path(__file__).parents[1]
LIST, PAGE = ROOT / "docs/data/field.json", ROOT / "docs/field.md"
KINDS = {
    "fell": "the entropy collapsed, at some time",
    "exploded": "the entropy exploded",
    "lost": "numbers are lost (NaN) until the end",
    "died": "the reward died",
    "no_signal": "nearly all groups are without a signal",
    "cut_off": "most responses are cut off",
    "mismatch": "engine and trainer differ",
    "length": "responses about doubled or halved",
}
"""Meaning of a label, by its key in field.json."""
ASIDE: dict[str, Callable[[int], bool]] = {
    "even numbers to 44, first sight": lambda number: number <= 44 and number % 2 == 0,
    "numbers 45 to 72, first sight": lambda number: 44 < number <= 72,
    "numbers 73 to 87, first sight": lambda number: 72 < number <= 87,
    "numbers 88 to 105, first sight": lambda number: 87 < number <= 105,
    "numbers 106 to 113, first sight": lambda number: 105 < number <= 113,
    "numbers 114 to 120, first sight": lambda number: 113 < number <= 120,
    "numbers 122 to 135, first sight": lambda number: number > 120,
}
"""Logs that were kept aside while the rules were written."""
READ_IN_PART = (115, 117)
"""Logs of which the tool read a few steps alone at first sight."""
LEVELS = {
    "no_signal": NO_SIGNAL,
    "cut_off": {"truncated"},
    "mismatch": {"mismatch/logp_gap", "mismatch/probs_diff"},
}


class Score(NamedTuple):
    """Labels of a kind on which both readers agree, beside verdicts."""

    labels: int
    true: int
    agree: int
    hits: int
    alarms: int
    """Verdicts that it happened where the readers saw nothing."""


def place(log: Mapping[str, Any], folder: Path) -> Path:
    """Return the file of a log, fetched if it is not there. Raises ValueError if it is not the file of the list."""
    file = folder / f"{log['number']:02d}-{Path(log['path']).name}"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        address = f"https://raw.githubusercontent.com/{log['repository']}/{log['commit']}/{quote(log['path'])}"
        with urllib.request.urlopen(address, timeout=60) as found:
            file.write_bytes(found.read())
    if hashlib.sha256(file.read_bytes()).hexdigest() != log["sha256"]:
        raise ValueError(f"{file} is not the file of {LIST.name}: remove it, and it is fetched again")
    return file


def diagnosed(file: Path) -> Facts | None:
    """Return the facts of the longest run in a log; None if it cannot be read."""
    try:
        return measure(max(read_path(file), key=lambda run: len(run.metrics)).metrics)
    except ValueError:
        return None


def verdicts(facts: Facts | None) -> list[str] | None:
    """Return the kinds of KINDS that the tool tells; None if it could not read the log."""
    if facts is None:
        return None
    one = facts.happened
    told = {"fell": one.fell, "exploded": one.exploded, "lost": one.lost, "died": one.died, "length": one.length}
    return [kind for kind in KINDS if told.get(kind) or LEVELS.get(kind, set()) & one.levels.keys()]


def seen(log: Mapping[str, Any], kind: str) -> bool | None:
    """Return what both readers saw; None if they differ or could not tell. A label may be the step where it begins."""
    first, second = (None if one[kind] is None else one[kind] is not False for one in log["labels"])
    return first if first == second else None


def score(logs: Iterable[Mapping[str, Any]], told: Sequence[list[str] | None], kinds: Iterable[str]) -> Score:
    """Return how verdicts compare with the labels; a log that was not read agrees with none."""
    pairs = [
        (truth, None if verdict is None else kind in verdict)
        for log, verdict in zip(logs, told, strict=True)
        for kind in kinds
        if (truth := seen(log, kind)) is not None
    ]
    return Score(
        labels=len(pairs),
        true=sum(truth for truth, _ in pairs),
        agree=sum(truth == verdict for truth, verdict in pairs),
        hits=sum(truth and bool(verdict) for truth, verdict in pairs),
        alarms=sum(not truth and bool(verdict) for truth, verdict in pairs),
    )


def cells(found: Score) -> str:
    """Return four cells of the table, dashes where the readers could not tell."""
    if not found.labels:
        return "– | – | – | –"
    null = f"{(found.labels - found.true) / found.labels:.0%}"
    agreement = f"{found.agree} of {found.labels} ({found.agree / found.labels:.0%})"
    return f"{agreement} | {null} | {found.hits} of {found.true} | {found.alarms}"


def share(part: int, whole: int) -> str:
    """Return a share with its 95% interval."""
    low, high = binomtest(part, whole).proportion_ci(method="wilson")
    return f"{part} of {whole} ({part / whole:.0%}, {low:.0%} to {high:.0%})"


def page(logs: Sequence[Mapping[str, Any]], about_law: str) -> str:
    """Return docs/field.md. about_law: its section on the law."""
    now, first = ([log["last"]["said"] for log in logs], [log["first_sight"] for log in logs])
    fell = score(logs, now, ["fell"])
    sizes = {"logs": len(logs), "repositories": len({log["repository"] for log in logs})}
    parts = [INTRODUCTION.format(**sizes, fell=share(fell.true, fell.labels))]
    parts.append("## What happens to runs\n")
    parts.append("| what happened | runs, of those in which both readers could tell | repositories |\n|---|---|--:|")
    for kind, what in KINDS.items():
        all_of = score(logs, now, [kind])
        there = {log["repository"] for log in logs if seen(log, kind)}
        parts.append(f"| {what} | {share(all_of.true, all_of.labels)} | {len(there)} |")
    parts.append("\nThe intervals treat runs as independent, but runs of one repository are not.\n")
    parts.append("## What the tool says\n")
    partly = [None if log["number"] in READ_IN_PART else log["first_sight"] for log in logs]
    sets = {name: [i for i, log in enumerate(logs) if of(log["number"])] for name, of in ASIDE.items()}
    *_, sixth, last = sets.values()
    rest = cells(score([logs[i] for i in sixth], [partly[i] for i in sixth], KINDS)).partition(" |")[0]
    newest = score([logs[i] for i in last], [first[i] for i in last], KINDS)
    null = f"{(newest.labels - newest.true) / newest.labels:.0%}"
    parts.append(TOOL.format(rest=rest, newest=share(newest.agree, newest.labels), null=null))
    for name, some, told in (
        *((name, some, first) for name, some in sets.items()),
        ("all logs, as last read", range(len(logs)), now),
    ):
        parts.append(f"### {name[0].upper()}{name[1:]}\n")
        parts.append("| what happened | agreement | null | hits | false alarms |\n|---|--:|--:|--:|--:|")
        for what, kinds in (*((what, [kind]) for kind, what in KINDS.items()), ("**all**", list(KINDS))):
            parts.append(f"| {what} | {cells(score([logs[i] for i in some], [told[i] for i in some], kinds))} |")
        read = [i for i in some if told[i] is not None]
        if len(read) < len(some):
            part = cells(score([logs[i] for i in read], [told[i] for i in read], KINDS)).partition(" |")[0]
            parts.append(f"\nThe tool read {len(read)} of {len(some)} logs. On these it agreed in {part}.")
        parts.append("")
    unread = [str(log["number"]) for log, one in zip(logs, first, strict=True) if one is None]
    still = [str(log["number"]) for log, one in zip(logs, now, strict=True) if one is None]
    parts.append(f"Logs not read: {', '.join(unread)} at first sight, {', '.join(still) or 'none'} since.\n")
    days: dict[str, list[int]] = {}
    for log in logs:
        days.setdefault(log["last"]["date"], []).append(log["number"])
    read_on = ", ".join(f"{some[0]} to {some[-1]} on {day}" for day, some in sorted(days.items()))
    parts.append(f"Last read: {read_on}.\n")
    parts.append("The tool and both readers still differ on these labels:\n")
    for log, verdict in zip(logs, now, strict=True):
        for kind in KINDS:
            truth = seen(log, kind)
            if truth is not None and truth != (kind in (verdict or ())):
                said = "not reported" if truth else "reported, though the readers saw none"
                parts.append(f"- log {log['number']}, {KINDS[kind]}: {said}")
    differ = sum(
        seen(log, kind) is None and None not in (x[kind] for x in log["labels"]) for log in logs for kind in KINDS
    )
    parts.append(f"\nThe two readers differ in {differ} of the labels that both gave.\n")
    parts.append(about_law)
    parts.append("## The logs\n")
    parts.append("| log | repository | file | trainer |\n|--:|---|---|---|")
    for log in logs:
        address = f"https://github.com/{log['repository']}/blob/{log['commit']}/{quote(log['path'])}"
        parts.append(
            f"| {log['number']} | {log['repository']} | [{Path(log['path']).name}]({address}) | {log['trainer']} |"
        )
    return "\n".join(parts) + "\n"


def law(facts: Iterable[Facts | None]) -> str:
    """Return the section on the law R = −a·e^H + b."""
    laws = [one.law for one in facts if one is not None and one.law is not None]
    forecasts = [one.prediction for one in laws if one.prediction is not None]
    r2 = sorted(one.law.r2 for one in laws if one.law.r2 == one.law.r2)
    return LAW.format(
        laws=len(laws),
        predicts=share(sum(one.predicts for one in laws), len(laws)),
        positive=share(sum(one.law.a_interval[0] > 0 for one in laws), len(laws)),
        r2=f"{r2[len(r2) // 2]:.2f} ({r2[0]:.2f} to {r2[-1]:.2f})",
        better=share(sum(one.beats_constant for one in forecasts), len(forecasts)),
        outside=share(sum(not one.within for one in forecasts), len(forecasts)),
    )


INTRODUCTION = """# In the field

<!-- python -m benchmarks.field --write -->

How often do other people's reinforcement-learning runs collapse, explode or die, and does
[`llmtrain diagnose`](diagnose.md) notice?

We looked at {logs} public logs from {repositories} repositories. Among those where both readers could tell, the
entropy collapsed in {fell}; the range is the 95% interval.

- **Choice.** We took the logs in the order in which searches of public repositories listed them, whatever had
  happened in the run, but at most three per repository. Each has at least 30 logged entropies. Published runs may
  still be better than others.
- **Labels.** Two readers labelled each log independently, from their own plots and tables and without the tool.
- **Sources.** `docs/data/field.json` has addresses, checksums and labels. The script fetches the logs, which are
  not stored here.
"""
TOOL = """What counts is **first sight**: agreement with both readers on logs that were set aside while the rules were
written. The target is .9.

1. The rules were written on logs with odd numbers up to 44, and first tried on the even ones.
2. Rules and formats were improved, then tried on logs 45 to 72.
3. They were improved again, then tried on logs 73 to 87.
4. The same with logs 88 to 105, from other repositories, found by wider searches.
5. The same with logs 106 to 113, eight logs from three repositories: all that a search of 320 more had.
6. The same with logs 114 to 120, seven logs from three repositories: all that a search of 438 more had. Of logs 115 and
   117 the tool read 7 of 100 steps and 4 of 40 then. Its verdicts agreed all the same, but if these two count as not
   read, it agreed in {rest}.
7. The same with logs 122 to 135, fourteen logs from eight repositories: all that a search of 461 more had. The tool
   read all of them whole. It agreed in {newest} of the labels, where the null is {null}. The interval
   treats labels as independent.

A log that the tool could not read counts as disagreement on all its labels. **Null** is the agreement of a tool that
never reports anything. Hits are events that both readers saw and the tool reported.
"""
LAW = """## The law against a constant

We say that the law R = −a·e^H + b predicts the reward if it explains more than a parabola in the step, beyond its
interval. It does in {predicts} of the logs with reward and entropy.
A forecast from the first 15% of the steps competes with a constant: the mean reward of the last third of these steps.

| of the {laws} logs | result |
|---|---|
| a is above 0 beyond its 95% interval | {positive} |
| R², median and range | {r2} |
| the forecast beats the constant | {better} |
| the forecast of the end lies outside the rewards of the run | {outside} |
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=Path, default=ROOT / "runs/field", help="folder for the logs")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    given = parser.parse_args()
    logs = json.loads(LIST.read_text(encoding="utf-8"))
    facts = read_again(logs, given.logs)
    old = re.search(r"## The law.*?(?=## The logs)", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    made = page(logs, law(facts) if len(facts) == len(logs) or old is None else old[0].rstrip() + "\n")
    print(made)
    if given.write:
        lines = ",\n".join(json.dumps(log, ensure_ascii=False) for log in logs)
        LIST.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
        PAGE.write_text(made, encoding="utf-8")


def read_again(logs: Sequence[dict[str, Any]], folder: Path) -> list[Facts | None]:
    """Return the facts of the logs that are there or can be fetched, and note in each what the tool says of it."""
    found = []
    for log in logs:
        try:
            file = place(log, folder)
        except OSError as error:
            print(f"log {log['number']} was not fetched ({error}): what was last said of it stands")
            continue
        found.append(diagnosed(file))
        log["last"] = {"date": date.today().isoformat(), "said": verdicts(found[-1])}
    return found


if __name__ == "__main__":
    main()
