"""`entrostat`: the commands of `python -m entrostat`, and `publish`, which needs the simulator and the explorer."""

import sys

from entrostat import __main__ as lower
from entrostat.settings.commandline import one_line_errors

USAGE = """
entrostat publish --claim thm1-centred.shift=0.5 --out page   a claim as a page for any static host
entrostat publish --compare runs/a runs/b --out page          runs as one; also --runs, --course, --playground"""


@one_line_errors
def main(args: list[str]) -> int:
    """Run the command line and return the exit code."""
    if args[:1] == ["publish"]:
        from .publish.publish_command import publish_command

        return publish_command(args[1:])
    if args in (["-h"], ["--help"]):
        print(lower.USAGE.replace("python -m entrostat", "entrostat") + USAGE)
        return 0
    return lower.main(args)


if __name__ == "__main__":
    sys.exit(main())
