"""Reports of records: lines for the terminal, a JSON file, and a Markdown page with pictures."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from .pictures import PICTURES
from .registry import CLAIMS, HOLDS, Effort, Record
from .theorems import derived, symbols

INTRODUCTION = """# The theory, measured

Every claim of the papers that a bandit can test, with its measurement and its verdict. Click a claim for the details:

- *Claimed*: what the paper says, in our words. *Threshold*: papers rarely say how closely a claim must hold, so the
  threshold is ours, with its reason.
- *Null*: the simpler explanation that the claim must beat or be told apart from.
- *The verdict would change if*: faults that we put into the code, one at a time, and the verdict with each. A claim
  that no fault changes would say nothing.
- *False failure*: the probability that fresh seeds give another verdict, from the standard errors and Student's t. It
  is 0 for statements about every instance or about expectations, which are tested on random examples.

`±` is one standard error over runs, and entropies are in nats. Environments are those of `toybandit/environments.py`,
with {states} states, {rollouts} rollouts and {runs} runs unless a claim says otherwise. Some of the claims are also
[tested in a language model](claims_lm.md).

    {command}

{count}
"""


def verdict_of(record: Record) -> str:
    """Return the verdict, followed by the expected verdict if the two differ."""
    return record.verdict if record.as_expected else f"{record.verdict} (expected: {record.expected})"


def doubt_of(record: Record) -> str:
    """Return the false-failure rate as text."""
    return f"{record.false_failure:.0e}" if record.false_failure else "0: deterministic"


def turning(record: Record) -> Iterator[str]:
    """Yield the name of each mutation, with the verdict under it if measured."""
    for name in record.mutations:
        if record.mutated is None:
            yield name
        elif name in record.unnoticed:
            yield f"{name} (not noticed)"
        else:
            yield f"{name} ({record.mutated[name]})"


def facts(record: Record) -> dict[str, str]:
    """Return titles and texts of a claim's details, without empty ones."""
    titles = {
        f"Claimed ({record.source})": record.words,
        "Assumption": record.assumption,
        "Paper's setting": record.setting,
        "Threshold (ours)": record.threshold,
        "Null": f"{record.null}: {record.measured_null}" if record.measured_null else record.null,
        "Measured": record.measured,
        "The verdict would change if": "; ".join(turning(record)),
        "False failure": doubt_of(record),
    }
    return {title: text for title, text in titles.items() if text}


def line(record: Record) -> str:
    """Return the claim and its verdict as a line; with power, also the number of mutations that turn it."""
    power = ""
    if record.mutated is not None:
        turned = len(record.mutated) - len(record.unnoticed)
        power = f"; {turned} of {len(record.mutated)} mutations turn it"
        power += "".join(f"; not noticed: {name}" for name in record.unnoticed)
    return f"{record.name}: {verdict_of(record)}{power}"


def details(record: Record) -> str:
    """Return the claim's details, one indented line each."""
    return "\n".join(f"    {title}: {text}" for title, text in facts(record).items())


def summary(records: Sequence[Record]) -> str:
    """Return the number of verdicts and of mutations that are not as expected, in a line."""
    surprises = [record.name for record in records if not record.as_expected]
    parts = [
        f"{len(records)} claims" if len(records) > 1 else "1 claim",
        f"not as expected: {', '.join(surprises)}" if surprises else "all verdicts as expected",
    ]
    if any(record.mutated is not None for record in records):
        count = sum(len(record.mutations) for record in records)
        deaf = [record.name for record in records if record.unnoticed]
        noticed = f"not noticed by {', '.join(deaf)}" if deaf else "each changes a verdict"
        parts.append(f"{count} fault{'s' * (count != 1)} put into the code, {noticed}")
        if without := [record.name for record in records if not record.mutations]:
            parts.append(f"without a mutation, so that nothing shows they can fail: {', '.join(without)}")
    return "; ".join(parts) + f"; false failure at most {max(record.false_failure for record in records):.0e}"


def succeeded(records: Sequence[Record]) -> bool:
    """Return True if every verdict is the expected one, and every measured mutation turns it."""
    return all(
        record.as_expected and not record.unnoticed and (record.mutated is None or record.mutations)
        for record in records
    )


def as_json(records: Sequence[Record]) -> str:
    """Return the records as a JSON list."""
    content = [asdict(record) | {"as_expected": record.as_expected} for record in records]
    for one in content:
        del one["margins"]
    return json.dumps(content, indent=2, ensure_ascii=False)


def entry(record: Record, picture: str | None) -> str:
    """Return the page's section on one claim."""
    verdict = verdict_of(record)
    lines = [
        f"### {record.name}",
        "",
        f"**{verdict[0].upper()}{verdict[1:]}.** {' '.join(record.meaning.split())}",
        "",
        *(f"- **{title}**: {text}" for title, text in facts(record).items()),
        *derivation_of(record.name),
        "",
    ]
    if picture is not None:
        lines += [f"![{PICTURES[record.name].caption}]({picture})", "", f"*{PICTURES[record.name].caption}*", ""]
    return "\n".join(lines)


def derivation_of(name: str) -> list[str]:
    """Return the lines on a claim's derivation and test; none of a claim that is not imported."""
    claim = CLAIMS.get(name)
    return derived(claim.theorem, claim.check.__module__, "..") if claim else []


def overview(records: Sequence[Record]) -> str:
    """Return a table of all verdicts, with links to the claims; heading addresses omit the dots of names."""
    lines = [f"[{r.name}](#{r.name.replace('.', '')}) | {r.paper} | {verdict_of(r)}" for r in records]
    head = ("claim | paper | verdict", "--- | --- | ---")
    return "\n".join(f"| {line} |" for line in (*head, *lines)) + "\n"


def page(records: Sequence[Record], effort: Effort, command: str, pictures: str) -> str:
    """Return the Markdown page; `pictures`: folder of the pictures relative to the page."""
    hold = sum(record.verdict == HOLDS for record in records)
    count = f"{hold} of {len(records)} claims hold as stated. {summary(records)}."
    parts = [INTRODUCTION.format(command=command, count=count, **vars(effort)), overview(records), symbols()]
    for paper in dict.fromkeys(record.paper for record in records):
        parts.append(f"## {paper}\n")
        for record in records:
            if record.paper == paper:
                parts.append(entry(record, f"{pictures}/{record.name}.png" if record.name in PICTURES else None))
    return "\n".join(parts).rstrip() + "\n"


COMMAND = re.compile(r"^    (toybandit verify\b.*)", re.MULTILINE)


def is_full(folder: Path) -> bool:
    """Return True if the folder contains a page of all claims that was made without --quick."""
    path = folder / "theory.md"
    command = COMMAND.search(path.read_text()) if path.exists() else None
    return command is not None and re.search(r" --(quick|only)\b|verify [^-]", command[1]) is None


def read(folder: Path) -> tuple[dict[str, Record], str]:
    """Return the records of a page of all claims by name, and the command that made it.

    Raises ValueError if the folder has no such page, or one of another version.
    """
    if not is_full(folder) or not (folder / "theory" / "claims.json").exists():
        raise ValueError(f"{folder} has no page of all claims: write it with toybandit verify --power --out {folder}")
    found = {}
    for content in json.loads((folder / "theory" / "claims.json").read_text()):
        del content["as_expected"]
        try:
            record = Record(**content | {"mutations": tuple(content["mutations"])})
        except TypeError as error:
            raise ValueError(f"{folder / 'theory' / 'claims.json'} is of another version: {error}") from None
        found[record.name] = record
    return found, COMMAND.findall((folder / "theory.md").read_text())[0]


def write(
    records: Sequence[Record], folder: Path, effort: Effort, command: str, drawn: Sequence[str] | None = None
) -> None:
    """Write theory.md into `folder`, and claims.json and the pictures into its folder theory; create missing ones.

    drawn: names of the claims whose pictures are drawn; None for all.
    """
    inside = folder / "theory"
    inside.mkdir(parents=True, exist_ok=True)
    (inside / "claims.json").write_text(as_json(records) + "\n")
    for record in records:
        if record.name in PICTURES and (drawn is None or record.name in drawn):
            PICTURES[record.name].save(effort, inside / f"{record.name}.png")
    (folder / "theory.md").write_text(page(records, effort, command, inside.name))
