"""`entrostat`: the commands of `entrostat.__main__`, and `publish`, which needs the simulator and the explorer."""

import sys

from entrostat import __main__ as lower
from entrostat.settings.commandline import one_line_errors


@one_line_errors
def main(args: list[str]) -> int:
    """Run the command line and return the exit code."""
    if args[:1] == ["publish"]:
        from .publish.publish_command import publish_command

        return publish_command(args[1:])
    return lower.main(args)


if __name__ == "__main__":
    sys.exit(main())
