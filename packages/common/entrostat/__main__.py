"""entrostat: controllers, surrogates and advantages by name.

    entrostat list
    entrostat describe thermostat
    entrostat check-controller my_module:MyRule target=0.4
    entrostat publish --claim thm1-centred.shift=0.5 --out page
    entrostat completion >> ~/.bashrc

`python -m entrostat` is the same program.
"""

import json
import sys
from pathlib import Path
from typing import Any

from . import __version__
from .settings.choosing import unknown
from .settings.commandline import Main, one_line_errors, parse_settings
from .settings.commandline_help import overview, tell
from .settings.importing import plug_ins

COMMANDS = {
    "list": "List every name with its formula, and plug-ins.",
    "describe": "Show formula, notes, needs, hyperparameters, source.",
    "check-controller": "Try a rule with micro-batches, ranks, checkpoints, NaN.",
    "docs": "Print the page docs/controllers.md.",
    "publish": "Write claims, runs or a playground as a page of its own.",
    "completion": "Print what bash or zsh needs to complete with the tab key.",
}
OTHERS = (
    "entrostat.logs",
    "toybandit.claims",
    "llmtrain.claims",
    "llmtrain.tasks",
    "llmtrain.verifiers",
    "llmtrain.rollout_engines",
)
"""Groups of entry points of the other packages."""
MEASURED = Path("docs/data/measured.json")


@one_line_errors
def main(args: list[str]) -> int:
    """Run the command line, but for `publish`, which needs the explorer; return the exit code."""
    match args:
        case [] | [*_, "-h" | "--help"]:
            print(overview("entrostat", __doc__ or "", {"Commands": COMMANDS}))
        case ["--version"]:
            print(f"entrostat {__version__}")
        case ["list"]:
            _print_list()
        case ["describe", name]:
            _print_description(name)
        case ["check-controller", spec, *settings]:
            return _check(spec, settings)
        case ["docs"]:
            from .about.description import markdown

            measured = json.loads(MEASURED.read_text()) if MEASURED.exists() else None
            sys.stdout.write(markdown(measured))
        case ["completion"]:
            from .settings.commandline_completion import SCRIPT

            print(SCRIPT)
        case ["describe"] | ["check-controller"]:
            raise ValueError(f"entrostat {args[0]} needs a name; entrostat list shows them")
        case [name, *rest] if name in COMMANDS:
            raise ValueError(f"entrostat {name} does not take {' '.join(rest)}")
        case [name, *_]:
            raise ValueError(unknown("command", name, COMMANDS))
    return 0


def program() -> Main:
    """Return the installed program `entrostat`, which has `publish`; without one, `main`."""
    installed = (entry.load() for entry in plug_ins("console_scripts") if entry.name == "entrostat")
    found: Main = next(installed, main)
    return found


def _check(spec: str, settings: list[str]) -> int:
    """Print a line for each check of a controller; return 1 if one found a fault."""
    from .about.check_controller import checked

    faults = 0
    for name, fault in checked(spec, parse_settings(settings)):
        print(f"{name:21} {fault or 'ok'}", flush=True)
        faults += bool(fault)
    print(f"{spec} has {faults} fault{'s' * (faults != 1)}" if faults else f"{spec} passes all checks")
    return 1 if faults else 0


def _print_list() -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from .about.description import KINDS, describe, names
    from .advantages import GROUP as ADVANTAGES
    from .registry import ALIASES, GROUPS
    from .settings.importing import distribution

    for kind in KINDS:
        table = Table(kind, "formula", "hyperparameters", title=f"{kind}s", title_justify="left")
        rows = {name: describe(name, kind) for name in names(kind)}
        for name, about in rows.items():
            table.add_row(name, escape(about["rule"]), ", ".join(about["hyperparameters"]))
        for alias, name in ALIASES.items():
            if name in rows:
                table.add_row(alias, f"another name of {name}", "")
        Console().print(table)
    for entry in plug_ins(*GROUPS, ADVANTAGES):
        kinds = KINDS[2:] if entry.group == ADVANTAGES else KINDS[:2]
        taken = entry.name in ALIASES or any(entry.name in names(kind) for kind in kinds)
        unused = ", not used: the name is built in" if taken else ""
        tell(f"plug-in {entry.name} ({entry.group} of {distribution(entry)}): {entry.value}{unused}")
    for entry in plug_ins(*OTHERS):
        tell(f"plug-in {entry.name} ({entry.group} of {distribution(entry)}): {entry.value}")


def _print_description(name: str) -> None:
    from .about.description import KINDS, describe

    found = [about for kind in KINDS if (about := _describe(name, kind))] or [describe(name)]
    tell("\n\n".join("\n".join(_lines(about)) for about in found))


def _describe(name: str, kind: str) -> dict[str, Any] | None:
    from .about.description import describe, names
    from .registry import ALIASES

    return describe(name, kind) if ALIASES.get(name, name) in names(kind) or name in names(kind) else None


def _lines(about: dict[str, Any]) -> list[str]:
    from .about.description import QUADRANTS, interval

    lines = [f"{about['name']} ({about['kind']})", about["rule"]]
    lines += ["", about["notes"], ""] if about["notes"] else [""]
    lines.append(f"needs      {', '.join(about['needs']) or 'nothing beyond the advantage'}")
    if about["state"]:
        lines.append(f"state      {', '.join(about['state'])}")
    lines.append(f"acts on    {'; '.join(f'{q} ({QUADRANTS[q]})' for q in about['quadrants']) or 'not said'}")
    lines.append(f"source     {about['source']}")
    for key, setting in about["hyperparameters"].items():
        doc = f"   {setting['doc']}" if setting["doc"] else ""
        lines.append(f"{key} = {setting['default']}{interval(setting)}{doc}")
    for preset, changes in about["presets"].items():
        if changes:
            lines.append(f"preset {preset}: " + ", ".join(f"{key}={value}" for key, value in changes.items()))
    return lines


if __name__ == "__main__":
    sys.exit(program()())
