"""`entrostat publish`: write pages that need no Python."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from entrostat.commandline import parse_flags, writing
from entrostat.out_folder import check_own

FILE = "index.html"
DESCRIPTION = """Write claims and a playground as one self-contained HTML page, index.html, for any static host.

Examples: entrostat publish --claim thm1-centred.shift=0.5 --out page
          entrostat publish --playground --claim windup.kp --out page

Each --claim names a claim of toybandit verify, one of its controls and the value at which the page's slider starts.
The claim's trial is run beforehand, once for each position of the slider. The page asks nothing of any host."""


@dataclass(frozen=True, kw_only=True)
class PublishFlags:
    """Flags of `entrostat publish`."""

    claim: Annotated[tuple[str, ...], tyro.conf.arg(metavar="CLAIM.CONTROL[=VALUE]"), tyro.conf.UseAppendAction] = ()
    """Claim, control and first value, such as thm1-centred.shift=0.5; may be repeated."""
    playground: bool = False
    """Add a bandit that the page simulates: plain GRPO on the environment trap."""
    out: Path = Path("page")
    """Folder for index.html; it contains nothing else."""
    overwrite: bool = False
    """Replace a page that this command wrote before."""


def publish_command(args: Sequence[str]) -> int:
    """Write claims as a page that needs no Python."""
    flags = parse_flags(PublishFlags, args, prog="entrostat publish", description=DESCRIPTION)
    if not flags.claim and not flags.playground:
        raise ValueError("name what to publish, such as --claim thm1-centred.shift=0.5")
    from . import claim_page, playground_page
    from .claim_grid import parse
    from .whole_page import page

    grids = [parse(text) for text in flags.claim]
    names = [grid.name for grid in grids]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"--claim {twice[0]} is given twice")
    _check(flags.out, flags.overwrite)
    from rich.console import Console
    from rich.progress import Progress

    sections, told = {}, []
    if flags.playground:
        sections[playground_page.NAME] = playground_page.section()
        told.append(playground_page.NAME)
    with Progress(console=Console(stderr=True), transient=True) as bars:
        for grid in grids:
            entries = list(bars.track(grid.entries(), total=len(grid.values), description=grid.name))
            sections[grid.name] = claim_page.section(grid, entries)
            told.append(f"{grid.name} at {len(entries)} values")
    scripts = ["page.js", *(["playground.js"] if flags.playground else [])]
    path = flags.out / FILE
    with writing(path):
        flags.out.mkdir(parents=True, exist_ok=True)
        path.write_text(page(sections, scripts), encoding="utf-8")
    print(f"{path}: {', '.join(told)}; {path.stat().st_size / 1000:.0f} kB")
    return 0


def _check(out: Path, overwrite: bool) -> None:
    """Raise ValueError if the folder holds files that this command did not write, or a page that is to be kept."""
    from .whole_page import GENERATOR

    path = out / FILE
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file: name a folder")
    check_own(out, () if path.exists() and GENERATOR not in path.read_text("utf-8", "replace") else (FILE,))
    if path.exists() and not overwrite:
        raise ValueError(f"{out} holds a page: choose another --out, or pass --overwrite")
