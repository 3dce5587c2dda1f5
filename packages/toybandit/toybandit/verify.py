"""`toybandit verify`: measure claims and report their verdicts."""

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import tyro

from entrostat.settings.allowed import PositiveInt
from entrostat.settings.commandline import parse_flags
from entrostat.settings.commandline_help import tell

if TYPE_CHECKING:
    from .claims import Claim, Effort, Record

DESCRIPTION = """Check the claims of the papers by measurement, and print a line with the verdict of each.

Examples: toybandit verify --quick
          toybandit verify law-prediction steer-sign --power
          toybandit verify my_module:my_claim --quick

Without NAME and --only, all claims are measured, and theory.md, a page with pictures, and theory/claims.json are
written. In the repository the numbers are compared with those of docs/theory. Exit code 1 if a verdict is not the
expected one, if a mutation does not turn its verdict, or if a number has moved by more than its error.
docs/theory.md is written by: toybandit verify --power --out docs, and after a change to one claim by:
toybandit verify NAME --update docs"""
DEFAULT = Path("runs/verify")
CRASHED = "a process that measured claims crashed, perhaps out of memory: use fewer --workers"


@dataclass(frozen=True, kw_only=True)
class VerifyFlags:
    """Flags of `toybandit verify`."""

    names: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="NAME")] = ()
    """Claims to measure, with their details; none: all built-in ones. One elsewhere is module:claim, or the name of a
    plug-in's entry point in toybandit.claims."""
    only: str = ""
    """Measure the claims with this in their name; * and ? as in a shell."""
    power: bool = False
    """Also measure each claim with each of its mutations, which must turn the verdict."""
    quick: bool = False
    """Fewer random instances and runs; the same claims and thresholds."""
    workers: PositiveInt = 1
    """Number of processes, each of which measures a claim at a time; the numbers are the same with any."""
    details: bool = False
    """Print the measurements, thresholds, nulls and mutations of every claim."""
    json: bool = False
    """Print JSON, and the lines on standard error."""
    out: Path | None = None
    """Folder for theory.md and its folder theory, which holds claims.json and the pictures; runs/verify if all claims
    are measured, else none."""
    overwrite: bool = False
    """Overwrite a page of all claims, made without --quick, with a smaller one."""
    update: Path | None = None
    """Folder of a page of all claims: measure the named ones anew, with their mutations if the page has those, and keep
    its other measurements."""


class Page(NamedTuple):
    """Page that a command writes."""

    folder: Path | None
    """None: no page."""
    command: str
    """Command on it."""
    power: bool
    """True if it has mutations."""
    order: tuple[str, ...]
    """Names of all built-in claims, in the order of a page of which a part is measured anew; () for a new page."""
    kept: "Mapping[str, Record]"
    """Records of that page; {} for a new one."""

    def write(self, records: "Sequence[Record]", effort: "Effort") -> None:
        from .claims import report

        if self.folder is None:
            return
        if not self.order:
            return report.write(records, self.folder, effort, self.command)
        found = {**self.kept, **{record.name: record for record in records}}
        ordered = [found.pop(name) for name in self.order] + list(found.values())
        report.write(ordered, self.folder, effort, self.command, drawn=[record.name for record in records])


def verify_command(args: Sequence[str]) -> int:
    """Check the claims of the papers by measurement."""
    flags = parse_flags(VerifyFlags, args, prog="toybandit verify", description=DESCRIPTION)
    from . import trials  # noqa: F401 (live cases name them)
    from .claims import CLAIMS, report, stored_numbers
    from .claims.registry import FULL, QUICK

    own = tuple(CLAIMS)
    claims, some = CLAIMS.choose(flags.names, flags.only), bool(flags.names or flags.only)
    for claim in claims:
        if claim.live:
            claim.live.check()
    command = shlex.join(["toybandit", "verify", *args])
    page = new_page(flags, some, command) if flags.update is None else page_to_update(flags, own, claims)
    effort, told = QUICK if flags.quick else FULL, sys.stderr if flags.json else sys.stdout
    stored, moved, records = stored_numbers.read(flags.quick), [], []
    for record in measured(claims, effort, replace(flags, power=page.power)):
        records.append(record)
        tell(f"{len(records):>{len(str(len(claims)))}}/{len(claims)} {report.line(record)}", told)
        if flags.details or flags.names:
            tell(report.details(record), told)
        for line in stored_numbers.moved(record, stored):
            moved.append(line)
            tell(f"    {line}", told)
    page.write(records, effort)
    whole = flags.update is not None or not (flags.quick or some)
    if rewritten := stored_numbers.is_stored_in(page.folder if whole else None):
        stored_numbers.write_quick(list(measured(claims, QUICK, replace(flags, power=False))), stored_numbers.FOLDER)
    parts = [report.summary(records), stored_numbers.summary(records, stored, moved), str(page.folder or "")]
    tell("; ".join(filter(None, parts)), told)
    if flags.json:
        print(report.as_json(records))
    return 0 if report.succeeded(records) and (rewritten or not moved) else 1


def new_page(flags: VerifyFlags, some: bool, command: str) -> Page:
    """Return the page that these flags ask for; some: not all claims are measured.

    Raises ValueError if it would replace a page of all claims by a smaller one.
    """
    from .claims import report

    out = DEFAULT if flags.out is None and not some else flags.out
    if out is not None and (flags.quick or some) and report.is_full(out) and not flags.overwrite:
        raise ValueError(f"{out} holds all claims without --quick: choose another --out, or pass --overwrite")
    return Page(out, command, flags.power, (), {})


def page_to_update(flags: VerifyFlags, own: tuple[str, ...], claims: "Sequence[Claim]") -> Page:
    """Return the page in `flags.update`. Raises ValueError for other flags, and if the page lacks a claim of ours."""
    from .claims import report

    assert flags.update is not None
    if flags.quick or flags.out is not None or flags.power:
        raise ValueError("--update measures as its page says: leave --quick, --power and --out out")
    kept, command = report.read(flags.update)
    if absent := [name for name in own if name not in kept and name not in {claim.name for claim in claims}]:
        raise ValueError(f"the page in {flags.update} lacks {', '.join(absent)}: name them too")
    return Page(flags.update, command, "--power" in command, own, kept)


def measured(claims: "Sequence[Claim]", effort: "Effort", flags: VerifyFlags) -> "Iterator[Record]":
    """Yield the record of each claim, in order, measured here or in several processes."""
    from .claims import run_claims
    from .sweep.running import in_processes

    if flags.workers == 1 or len(claims) < 2:
        yield from run_claims(claims, effort, power=flags.power)
        return
    asked = [(claim.name, flags.names, effort, flags.power) for claim in claims]
    ended: dict[int, Record] = {}
    following = 0
    for place, record in in_processes(_measure, asked, flags.workers, CRASHED):
        ended[place] = record
        while following in ended:
            yield ended.pop(following)
            following += 1


def _measure(asked: "tuple[str, Sequence[str], Effort, bool]") -> "Record":
    """Return the record of the claim with this name, in a process that has not imported claims yet."""
    from . import trials  # noqa: F401 (live cases name them)
    from .claims import CLAIMS

    name, names, effort, power = asked
    CLAIMS.choose(names)  # imports those that are not ours
    return CLAIMS[name](effort, power=power)
