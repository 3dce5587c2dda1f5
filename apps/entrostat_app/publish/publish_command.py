"""`entrostat publish`: write pages that need no Python."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from entrostat.settings.commandline import parse_flags, writing
from entrostat.settings.out_folder import check_own

if TYPE_CHECKING:
    from .claim_grid import Grid
    from .whole_page import Section

FILE = "index.html"
DESCRIPTION = """Write claims, a playground, runs or the course as one HTML page, index.html, for any static host.

Examples: entrostat publish --claim thm1-centred.shift=0.5 --out page
          entrostat publish --playground --claim windup.kp --out page
          entrostat publish --compare runs/grpo runs/entropic --out page
          entrostat publish --runs runs --out page
          entrostat publish --course --out page

Each --claim names a claim of toybandit verify, one of its controls and the value at which the page's slider starts.
The claim's trial is run beforehand, once for each position of the slider. The page asks nothing of any host."""


@dataclass(frozen=True, kw_only=True)
class PublishFlags:
    """Flags of `entrostat publish`."""

    claim: Annotated[tuple[str, ...], tyro.conf.arg(metavar="CLAIM.CONTROL[=VALUE]"), tyro.conf.UseAppendAction] = ()
    """Claim, control and first value, such as thm1-centred.shift=0.5; may be repeated."""
    playground: bool = False
    """Add two runs that the page simulates: GRPO beside a thermostat on the environment trap."""
    compare: tuple[Path, ...] = ()
    """Runs to compare: folders of runs, or other trainers' logs; of a folder that holds several runs, all of them."""
    runs: Path | None = None
    """Folder whose runs to list, each experiment with its curves."""
    course: bool = False
    """Add all lessons of the course."""
    out: Path = Path("page")
    """Folder for index.html; it contains nothing else."""
    overwrite: bool = False
    """Replace a page that this command wrote before."""


def publish_command(args: Sequence[str]) -> int:
    """Write a page that needs no Python."""
    flags = parse_flags(PublishFlags, args, prog="entrostat publish", description=DESCRIPTION)
    if not (flags.claim or flags.playground or flags.compare or flags.runs or flags.course):
        raise ValueError("name what to publish, such as --claim thm1-centred.shift=0.5")
    from .claim_grid import parse
    from .whole_page import page

    grids = [parse(text) for text in flags.claim]
    names = [grid.name for grid in grids]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"--claim {twice[0]} is given twice")
    _check(flags.out, flags.overwrite)
    sections = [*_of_runs(flags), *_measured(flags, grids)]
    path = flags.out / FILE
    with writing(path):
        flags.out.mkdir(parents=True, exist_ok=True)
        path.write_text(page(sections), encoding="utf-8")
    told = ", ".join(section.told for section in sections if section.told)
    print(f"{path}: {told}; {path.stat().st_size / 1000:.0f} kB")
    return 0


def _of_runs(flags: PublishFlags) -> "Iterator[Section]":
    """Yield the parts made from run logs."""
    if not flags.compare and flags.runs is None:
        return
    from streamlit.logger import set_log_level

    set_log_level("error")  # it warns that no page is running
    from . import runs_page

    if flags.compare:
        yield runs_page.compared(runs_page.found(flags.compare))
    if flags.runs is not None:
        yield runs_page.index(runs_page.found([flags.runs], flags.runs))


def _measured(flags: PublishFlags, grids: "Sequence[Grid]") -> "Iterator[Section]":
    """Yield the parts that are simulated, with a progress bar for those that take long."""
    from rich.console import Console
    from rich.progress import Progress

    from . import claim_page, playground_page

    if flags.playground:
        yield playground_page.section()
    with Progress(console=Console(stderr=True), transient=True) as bars:
        for grid in grids:
            entries = list(bars.track(grid.entries(), total=len(grid.values), description=grid.name))
            yield claim_page.section(grid, entries)
        if flags.course:
            from . import course_page

            for number, lesson in enumerate(course_page.LESSONS, 1):
                total = len(lesson.positions)
                track = bars.track(course_page.entries(lesson), total=total, description=lesson.title)
                yield course_page.section(number, list(track))
            yield course_page.end()


def _check(out: Path, overwrite: bool) -> None:
    """Raise ValueError if the folder holds files that this command did not write, or a page that is to be kept."""
    from .whole_page import GENERATOR

    path = out / FILE
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file: name a folder")
    check_own(out, () if path.exists() and GENERATOR not in path.read_text("utf-8", "replace") else (FILE,))
    if path.exists() and not overwrite:
        raise ValueError(f"{out} holds a page: choose another --out, or pass --overwrite")
