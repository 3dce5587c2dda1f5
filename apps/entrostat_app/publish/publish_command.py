"""`entrostat publish`: write pages that need no Python."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from entrostat.commandline import parse_flags, writing
from entrostat.out_folder import check_own

FILE = "index.html"
DESCRIPTION = """Write claims as one self-contained HTML page, index.html, for any static host.

Example: entrostat publish --claim thm1-centred.shift=0.5 --out page

Each --claim names a claim of toybandit verify, one of its controls and the value at which the page's slider starts.
The claim's trial is run once for each position of the slider, so that the page computes nothing and asks nothing of any
host."""


@dataclass(frozen=True, kw_only=True)
class PublishFlags:
    """Flags of `entrostat publish`."""

    claim: Annotated[tuple[str, ...], tyro.conf.arg(metavar="CLAIM.CONTROL[=VALUE]"), tyro.conf.UseAppendAction] = ()
    """Claim, control and first value, such as thm1-centred.shift=0.5; may be repeated."""
    out: Path = Path("page")
    """Folder for index.html; it contains nothing else."""
    overwrite: bool = False
    """Replace a page that this command wrote before."""


def publish_command(args: Sequence[str]) -> int:
    """Write claims as a page that needs no Python."""
    flags = parse_flags(PublishFlags, args, prog="entrostat publish", description=DESCRIPTION)
    if not flags.claim:
        raise ValueError("name what to publish, such as --claim thm1-centred.shift=0.5")
    from .claim_grid import parse
    from .claim_page import page

    grids = [parse(text) for text in flags.claim]
    names = [f"{grid.case.claim}.{grid.parameter.key}" for grid in grids]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"--claim {twice[0]} is given twice")
    _check(flags.out, flags.overwrite)
    from rich.console import Console
    from rich.progress import Progress

    parts = []
    with Progress(console=Console(stderr=True), transient=True) as bars:
        for name, grid in zip(names, grids, strict=True):
            total = len(grid.values)
            parts.append((grid, list(bars.track(grid.entries(), total=total, description=name))))
    path = flags.out / FILE
    with writing(path):
        flags.out.mkdir(parents=True, exist_ok=True)
        path.write_text(page(parts), encoding="utf-8")
    positions = ", ".join(f"{name} at {len(entries)} values" for name, (_, entries) in zip(names, parts, strict=True))
    print(f"{path}: {positions}; {path.stat().st_size / 1000:.0f} kB")
    return 0


def _check(out: Path, overwrite: bool) -> None:
    """Raise ValueError if the folder holds files that this command did not write, or a page that is to be kept."""
    from .claim_page import GENERATOR

    path = out / FILE
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file: name a folder")
    check_own(out, () if path.exists() and GENERATOR not in path.read_text("utf-8", "replace") else (FILE,))
    if path.exists() and not overwrite:
        raise ValueError(f"{out} holds a page: choose another --out, or pass --overwrite")
