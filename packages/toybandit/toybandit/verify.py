"""`toybandit verify`: measure every claim and report its verdict."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from entrostat.commandline import parse_flags

DESCRIPTION = """Check the claims of the papers by measurement: claim, assumption, predicted, measured, verdict.

Example: toybandit verify --quick --out runs/verify

Prints a table and writes theory.md, a page with pictures, and theory/claims.json. Exit code 1 if a verdict is not the
expected one. docs/theory.md is written by: toybandit verify --out docs"""


@dataclass(frozen=True, kw_only=True)
class VerifyFlags:
    """Flags of `toybandit verify`."""

    quick: bool = False
    """Fewer random instances and runs; the same claims and tolerances."""
    out: Path = Path("runs/verify")
    """Folder for theory.md and its folder theory, which holds claims.json and the pictures."""
    overwrite: bool = False
    """With --quick: overwrite a page that was made without it."""


def verify_command(args: Sequence[str]) -> int:
    """Check the claims of the papers by measurement."""
    flags = parse_flags(VerifyFlags, args, prog="toybandit verify", description=DESCRIPTION)
    from rich.console import Console
    from rich.progress import track

    from .claims import CLAIMS, report, run_claims
    from .claims.registry import FULL, QUICK

    if flags.quick and report.is_full(flags.out) and not flags.overwrite:
        raise ValueError(f"{flags.out} holds claims without --quick: choose another --out, or pass --overwrite")
    console = Console()
    effort = QUICK if flags.quick else FULL
    claims = run_claims(effort)
    records = list(
        track(claims, "claims", total=len(CLAIMS), console=console, disable=not console.is_terminal, transient=True)
    )
    report.write(records, flags.out, effort, shlex.join(["toybandit", "verify", *args]))
    console.print(report.table(records))
    surprises = [record.name for record in records if not record.as_expected]
    told = f"not as expected: {', '.join(surprises)}" if surprises else "all verdicts as expected"
    doubt = f"false failure at most {max(record.false_failure for record in records):.0e}"
    console.print(f"{len(records)} claims, {told}; {doubt}; {flags.out}", highlight=False, soft_wrap=True)
    return 1 if surprises else 0
