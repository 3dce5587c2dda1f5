"""`toybandit leaderboard`: all controllers side by side, against the frontier."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from entrostat.settings.commandline import parse_flags

DESCRIPTION = """Run every controller, and GRPO with other advantages, in four environments and rank them.

Example: toybandit leaderboard --quick --workers 2

Writes leaderboard.md with its picture, and sweep.parquet with a row per run. Resumable like `toybandit sweep`."""
SEEDS = 16
QUICK_SEEDS, QUICK_STATES, QUICK_ROLLOUTS = 4, 16, 40


@dataclass(frozen=True, kw_only=True)
class LeaderboardFlags:
    """Flags of `toybandit leaderboard`."""

    quick: bool = False
    """Fewer seeds, states and rollouts."""
    out: Path = Path("runs/leaderboard")
    """Folder for sweep.parquet and parts/."""
    page: Path | None = None
    """Markdown file to write, with its picture in the folder of the same name. Default: leaderboard.md in --out."""
    workers: str = "2"
    """Number of processes, or ray."""
    overwrite: bool = False
    """Overwrite a sweep.parquet with runs that the leaderboard lacks; parts/ keeps them."""


def leaderboard_command(args: Sequence[str]) -> int:
    """Rank all controllers against the reward–entropy frontier."""
    flags = parse_flags(LeaderboardFlags, args, prog="toybandit leaderboard", description=DESCRIPTION)
    from entrostat.about.lineup import ADVANTAGES, entries

    from ..config import Config
    from ..sweep.command import sweep
    from .cells import ENVS, cells
    from .page import page
    from .picture import draw
    from .standings import standings

    seeds = range(QUICK_SEEDS if flags.quick else SEEDS)
    configs = {env: Config(env=env) for env in ENVS}
    if flags.quick:
        configs = {
            env: replace(config, states=QUICK_STATES, rollouts=QUICK_ROLLOUTS) for env, config in configs.items()
        }
    lineup = (*entries(), *ADVANTAGES)
    asked = {env: [(entry, cells(entry, config, seeds)) for entry in lineup] for env, config in configs.items()}
    distinct = dict.fromkeys(cell for groups in asked.values() for _, group in groups for cell in group)
    swept = sweep(list(distinct), flags.out, workers=flags.workers, overwrite=flags.overwrite)
    rows = {row["cell"]: row for row in swept}
    panels = {
        env: standings([(entry, [rows[cell.key] for cell in group]) for entry, group in groups])
        for env, groups in asked.items()
    }
    path = flags.page or flags.out / "leaderboard.md"
    picture = path.with_suffix("") / "frontier.png"
    draw(panels, configs, seeds, picture)
    path.write_text(page(panels, configs, seeds=len(seeds), picture=f"{path.stem}/{picture.name}"))
    print(path)
    return 0
