"""`toybandit verify`: measure every claim and say which hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from entrostat.commandline import parse_flags

DESCRIPTION = """Check the claims of the papers by measurement: claim, assumption, predicted, measured, verdict.

Example: toybandit verify --quick --out runs/verify

Prints a table and writes verify.json and verify.md. Exit code 1 when a verdict is not the expected one."""


@dataclass(frozen=True, kw_only=True)
class VerifyFlags:
    """Flags of `toybandit verify`."""

    quick: bool = False
    """Fewer random instances; the same claims and tolerances."""
    out: Path = Path("runs/verify")
    """Folder for verify.json and verify.md."""


def verify_command(args: Sequence[str]) -> int:
    """Check the claims of the papers by measurement."""
    flags = parse_flags(VerifyFlags, args, prog="toybandit verify", description=DESCRIPTION)
    from rich.console import Console
    from rich.progress import track

    from .claims import CLAIMS, report, run_claims
    from .claims.registry import FULL, QUICK

    console = Console()
    claims = run_claims(QUICK if flags.quick else FULL)
    records = list(
        track(claims, "claims", total=len(CLAIMS), console=console, disable=not console.is_terminal, transient=True)
    )
    report.write(records, flags.out)
    console.print(report.table(records))
    surprises = [record.name for record in records if not record.as_expected]
    told = f"not as expected: {', '.join(surprises)}" if surprises else "all verdicts as expected"
    console.print(f"{len(records)} claims, {told}; {flags.out}", highlight=False, soft_wrap=True)
    return 1 if surprises else 0
