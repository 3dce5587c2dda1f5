"""python -m entrostat list: every controller by name, with its rule in a line."""

import sys

from . import list_controllers
from .commandline import one_line_errors
from .registry import ALIASES, REGISTRY, hyperparameters


@one_line_errors
def main(args: list[str]) -> int:
    if args not in (["list"], []):
        raise ValueError(f"unknown command {' '.join(args)!r}; try: python -m entrostat list")
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("controller", "rule", "hyperparameters")
    for name in list_controllers():
        cls = REGISTRY[ALIASES.get(name, name)]
        rule = f"another name of {ALIASES[name]}" if name in ALIASES else (cls.__doc__ or "").splitlines()[0]
        table.add_row(name, escape(rule), "" if name in ALIASES else ", ".join(hyperparameters(cls)))
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
