"""Writes docs/coverage.md: python -m benchmarks.pages.coverage > docs/coverage.md

The items of the papers are in coverage.yaml, each with pointers into the registries. A pointer to nothing is an error,
and so is a claim, a figure or a recipe of the papers that no item points to. What was measured is read from the
registries and from the committed results, never typed.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from entrostat.advantages.registry import REGISTRY as ADVANTAGES
from entrostat.registry import REGISTRY as CONTROLLERS
from entrostat.settings.plain_yaml import load_yaml
from llmtrain.cli import COMMANDS
from llmtrain.commands.recipes import plan_of
from llmtrain.evaluation.paper_settings import PRESETS
from llmtrain.recipes.recipe import names as recipe_names
from toybandit.claims import CLAIMS
from toybandit.reproduce import FIGURES, OUT_OF_REACH
from toybandit.reproduce.registry import in_order

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ITEMS = Path(__file__).with_name("coverage.yaml")
KEYS = {"item", "what", "here", "none"}
BAR = r"\|"
"""Bar within a cell of a table."""


@dataclass(frozen=True)
class Found:
    """Entry of the page that a pointer points to."""

    here: str
    """Its name on the page, with a link."""
    measured: str = ""
    """Measurements of it, in words; "" for none."""
    named: tuple[tuple[str, str], ...] = ()
    """Kind and name of each entry of a registry that it stands for."""
    recipes: tuple[str, ...] = ()


class Row(NamedTuple):
    """Item of a paper on the page."""

    item: str
    what: str
    found: tuple[Found, ...]
    none: str
    """Reason why it, or a part of it, is not here; "" if all of it is."""


@dataclass(frozen=True)
class Paper:
    """Paper with its rows."""

    title: str
    claims: str
    """Name of the paper in the registry of claims."""
    figures: str
    """Start of its figures' names."""
    recipes: str
    """Folder of its recipes."""
    rows: tuple[Row, ...]


@cache
def verdicts(folder: str) -> Mapping[str, str]:
    """Return the committed verdicts by claim: those of the bandit in `theory`, of a language model in `claims_lm`."""
    return {record["name"]: record["verdict"] for record in json.loads((DOCS / folder / "claims.json").read_text())}


@cache
def peers() -> Mapping[str, tuple[str, ...]]:
    """Return the programs that a controller or an advantage was compared with, by its name."""
    found: dict[str, list[str]] = {}
    for pair in json.loads((DOCS / "data/conformity.json").read_text()):
        ours, _, theirs = pair.partition(" = ")
        found.setdefault(ours.split()[0], []).append(theirs.split()[0].rstrip(","))
    return {name: tuple(dict.fromkeys(some)) for name, some in found.items()}


def claim(name: str) -> Found:
    """Return a claim with its verdicts."""
    if name not in CLAIMS:
        raise ValueError(f"there is no claim {name!r}: toybandit verify lists them")
    if name not in verdicts("theory"):
        raise ValueError(f"claim {name!r} has no committed verdict: toybandit verify {name} --update docs")
    told = f"claim {name}: {verdicts('theory')[name]}"
    if name in verdicts("claims_lm"):
        told += f" (in a language model: {verdicts('claims_lm')[name]})"
    return Found(f"[{name}](theory.md#{name.lower().replace('.', '')})", told, (("claim", name),))


def figure(name: str) -> Found:
    """Return a figure that the bandit makes, or the reason why it cannot."""
    if name in OUT_OF_REACH:
        return Found("", f"not in a bandit: {OUT_OF_REACH[name]}", (("figure", name),))
    if name not in FIGURES:
        raise ValueError(f"there is no figure {name!r}: toybandit reproduce list names them")
    if not (DOCS / f"figures/{name}.png").is_file():
        raise ValueError(f"figure {name!r} was not made: toybandit reproduce {name} --page docs/figures.md")
    return Found(f"[{name}](figures.md)", f"{name} reproduced in the bandit", (("figure", name),))


def recipe(pattern: str) -> Found:
    """Return the recipes that a pattern names."""
    found = tuple(name for name in recipe_names() if fnmatchcase(name, pattern))
    if not found:
        raise ValueError(f"no recipe is called {pattern!r}: llmtrain recipes lists them")
    return Found(f"[`{pattern}`](recipes.md)", "", tuple(("recipe", name) for name in found), found)


def controller(name: str) -> Found:
    """Return a controller or a surrogate."""
    if name not in CONTROLLERS:
        raise ValueError(f"there is no controller {name!r}: python -m entrostat list names them")
    return Found(f"[`{name}`](controllers.md)", compared(name))


def advantage(name: str) -> Found:
    """Return an advantage."""
    if name not in ADVANTAGES:
        raise ValueError(f"there is no advantage {name!r}: python -m entrostat list names them")
    return Found(f"[`{name}`](controllers.md)", compared(name))


def compared(name: str) -> str:
    """Return the programs that a name was compared with, in words; "" for none."""
    return f"`{name}` against {' and '.join(peers()[name])}" if name in peers() else ""


def settings(name: str) -> Found:
    """Return the settings of a paper's evaluation."""
    if name not in PRESETS:
        raise ValueError(f"there are no evaluation settings {name!r}: known are {', '.join(PRESETS)}")
    return Found(f"[`--eval.settings {name}`](evaluation.md)")


def command(name: str) -> Found:
    """Return a command of llmtrain."""
    if name not in COMMANDS:
        raise ValueError(f"llmtrain has no command {name!r}")
    return Found(f"[`llmtrain {name}`](commands.md)")


def code(place: str) -> Found:
    """Return a function or a class at module:name."""
    module, _, name = place.partition(":")
    try:
        getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"there is no {place}: {error}") from None
    if not is_imported(module, name):
        raise ValueError(f"no test imports {place}: write one")
    return Found(f"`{place}`")


def is_imported(module: str, name: str) -> bool:
    """Return True if a test imports the name, from the module or from a package around it, or the module itself."""
    parts = module.split(".")
    around = [".".join(parts[:n]) for n in range(1, len(parts) + 1)]
    ways = [rf"from {re.escape(one)} import (?:[^\n(]*|\([^)]*)\b{name}\b" for one in around]
    ways += [rf"import {re.escape(module)}\b", rf"from {re.escape(around[-2])} import [^\n]*\b{parts[-1]}\b"]
    return any(re.search(way, tests()) for way in ways)


@cache
def tests() -> str:
    """Return the text of all tests."""
    return "\n".join(path.read_text() for path in sorted((ROOT / "tests").rglob("*.py")))


POINTERS: dict[str, Callable[[str], Found]] = {
    "claim": claim,
    "figure": figure,
    "recipe": recipe,
    "controller": controller,
    "advantage": advantage,
    "eval": settings,
    "command": command,
    "code": code,
}


def read_papers(content: Mapping[str, Any]) -> list[Paper]:
    """Return the papers with their rows. Raises ValueError, in one line that names the item, for a pointer to nothing.

    Raises it too for an item with neither a pointer nor a reason, and for what no item points to.
    """
    papers = []
    for entry in content["papers"]:
        rows = []
        for item in entry["items"]:
            try:
                rows.append(read_row(item))
            except ValueError as error:
                raise ValueError(f"coverage.yaml: {entry['claims']}, {item.get('item')}: {error}") from None
        papers.append(Paper(*(entry[key] for key in ("title", "claims", "figures", "recipes")), tuple(rows)))
    check_all_are_named(papers)
    return papers


def read_row(item: Mapping[str, Any]) -> Row:
    """Return an item with what its pointers point to."""
    if unknown := set(item) - KEYS:
        raise ValueError(f"unknown keys {', '.join(sorted(unknown))}; known are {', '.join(sorted(KEYS))}")
    found = []
    for pointer in item.get("here", ()):
        kind, _, name = pointer.partition(" ")
        if kind not in POINTERS:
            raise ValueError(f"{pointer!r} points nowhere: begin with {', '.join(POINTERS)}")
        found.append(POINTERS[kind](name))
    reason = item.get("none", "").strip()
    if not reason and not any(one.here for one in found):
        raise ValueError("neither a pointer nor a reason: add `here` or `none`")
    return Row(str(item["item"]), item["what"], tuple(found), reason)


def check_all_are_named(papers: list[Paper]) -> None:
    """Raise ValueError if no item of a paper points to one of its claims, figures or recipes."""
    for paper in papers:
        named = {one for row in paper.rows for found in row.found for one in found.named}
        if missing := [one for one in entries(paper) if one not in named]:
            kind, name = missing[0]
            raise ValueError(f"coverage.yaml: {paper.claims}: no item points to the {kind} {name!r}: add it")


def entries(paper: Paper) -> Iterator[tuple[str, str]]:
    """Yield kind and name of all that the registries hold of a paper."""
    yield from (("claim", entry.name) for entry in CLAIMS.values() if entry.paper == paper.claims)
    start = f"{paper.figures}-"
    yield from (("figure", name) for name in in_order([*FIGURES, *OUT_OF_REACH]) if name.startswith(start))
    yield from (("recipe", name) for name in recipe_names() if name.startswith(f"{paper.recipes}/"))


def gpu_hours(name: str) -> float:
    """Return the estimated GPU-hours of a recipe."""
    return plan_of(name).gpu_hours


def measured(row: Row, ran: Mapping[str, str], hours: Callable[[str], float] = gpu_hours) -> str:
    """Return what was measured of a row, in words; never empty.

    ran: results of recipes that were run at their published size, by name. hours: GPU-hours of a recipe.
    """
    told = list(dict.fromkeys(one.measured for one in row.found if one.measured))
    recipes = list(dict.fromkeys(name for one in row.found for name in one.recipes))
    told += [f"{name}: {ran[name]}" for name in recipes if name in ran]
    if left := [name for name in recipes if name not in ran]:
        many = f"{len(left)} recipes" if len(left) > 1 else "1 recipe"
        told.append(f"{many} not run at full size (about {sum(map(hours, left)):,.0f} GPU-hours)")
    if row.none:
        told.append(f"{'no' if not row.found else 'in part'}: {row.none}")
    return "; ".join(told) or "tested"


HEAD = """# Coverage of the papers

Every equation, algorithm, figure, table and setting of the five papers, where it is here, and what of it was measured.
A verdict is that of a [claim](theory.md) in the bandit; *against* names the programs whose loss or advantage was
[compared](conformity.md) with ours; *reproduced* means that the [figure](figures.md) was made in the bandit, where its
text says whether it shows the paper's result; *tested* means that there are tests of the code and nothing more. Every
[recipe](recipes.md) was planned and runs in small; its GPU-hours are an [estimate](plan.md).

Made from `benchmarks/pages/coverage.yaml` and the registries by
`python -m benchmarks.pages.coverage > docs/coverage.md`.
"""


def page(hours: Callable[[str], float] = gpu_hours) -> str:
    """Return the page. hours: GPU-hours of a recipe."""
    content = load_yaml(ITEMS)
    papers = read_papers(content)
    if gone := [name for name in content["ran"] if name not in recipe_names()]:
        raise ValueError(f"coverage.yaml: ran: no recipe is called {gone[0]!r}")
    return "\n".join(
        [HEAD, summary(papers, content["ran"]), *(table(paper, content["ran"], hours) for paper in papers)]
    )


def summary(papers: list[Paper], ran: Mapping[str, str]) -> str:
    """Return a table with the number of items of each paper, by what there is of them."""
    lines = ["| paper | items | with a claim or a figure | with recipes | not here | recipes run at full size |"]
    lines.append("|---|--:|--:|--:|--:|--:|")
    for paper in papers:
        kinds = [{kind for one in row.found for kind, _ in one.named} for row in paper.rows]
        own = [name for kind, name in entries(paper) if kind == "recipe"]
        numbers = (
            len(kinds),
            sum(bool(some & {"claim", "figure"}) for some in kinds),
            sum("recipe" in some for some in kinds),
            sum(not row.found for row in paper.rows),
            f"{sum(name in ran for name in own)} of {len(own)}",
        )
        lines.append(f"| {paper.title} | {' | '.join(map(str, numbers))} |")
    return "\n".join([*lines, ""])


def table(paper: Paper, ran: Mapping[str, str], hours: Callable[[str], float]) -> str:
    """Return the section of a paper."""
    lines = [f"## {paper.title}", "", "| item | what it is | here | measured |", "|---|---|---|---|"]
    for row in paper.rows:
        here = ", ".join(one.here for one in row.found if one.here) or "–"
        cells = (row.item, row.what, here, measured(row, ran, hours))
        lines.append(f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    print(page(), end="")
