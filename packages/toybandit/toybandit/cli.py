"""toybandit: entropy control of RLVR in a bandit in which every number is known.

    toybandit run --env noisy --controller entropic --target 0.6 --set tau=0 --set ki=0.05 --out runs/x
    toybandit run --env noisy --controller clip_higher+steer --controller-preset released
    toybandit verify --quick
    toybandit reproduce list
    toybandit sweep --grid examples/grids/gains.yaml --workers 2
    toybandit leaderboard --quick
    toybandit forecast --like runs/countdown --first 60 --total 480

`toybandit COMMAND --help` lists the flags.
"""

import sys
from collections.abc import Callable, Sequence

from entrostat import __version__
from entrostat.settings.choosing import unknown
from entrostat.settings.commandline import one_line_errors
from entrostat.settings.commandline_help import overview

from .forecast.command import forecast_command
from .leaderboard.command import leaderboard_command
from .reproduce.command import reproduce_command
from .run import run_command
from .sweep.command import sweep_command
from .verify import verify_command

COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "run": run_command,
    "verify": verify_command,
    "reproduce": reproduce_command,
    "sweep": sweep_command,
    "leaderboard": leaderboard_command,
    "forecast": forecast_command,
}


@one_line_errors
def main(args: list[str]) -> int:
    if not args or args[0] in ("-h", "--help"):
        commands = {name: command.__doc__ or "" for name, command in COMMANDS.items()}
        print(overview("toybandit", __doc__ or "", {"Commands": commands}))
        return 0
    if args[0] == "--version":
        print(f"toybandit {__version__}")
        return 0
    if args[0] not in COMMANDS:
        raise ValueError(unknown("command", args[0], COMMANDS))
    return COMMANDS[args[0]](args[1:])


if __name__ == "__main__":
    sys.exit(main())
