"""Help that fits the terminal: text that is wrapped anew, and lists of commands."""

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

SOURCE = 120
"""Columns of the source: a line that had no room for the first word of the next one is joined with it."""
BESIDE = 24
"""Fewest columns for what is said beside a command; with fewer it goes below."""
PROGRAMS = {
    "entrostat": "Controllers by name; pages for any static host.",
    "toybandit": "Simulate, sweep and verify in a bandit.",
    "llmtrain": "Train and evaluate language models.",
    "entrostat-app": "Explore runs, theorems and a live bandit in a browser.",
}
"""Programs of the distribution, with what each is for."""


def fold(text: str) -> str:
    """Return text of the source in lines as wide as the terminal, but for SOURCE columns at most.

    Paragraphs are wrapped anew, and commands are continued with a backslash. What stands two spaces or more from the
    words before it, such as the explanation of a command, hangs below its first word.
    """
    lines, last = list[str](), ""
    for line in text.strip("\n").splitlines():
        full = last and line[:1].strip() and len(f"{last} {line.split()[0]}") > SOURCE
        if full and not _is_command(line) and not _is_command(last):
            lines[-1] += f" {line}"
        else:
            lines.append(line)
        last = line
    return _wrapped(lines)


def tell(text: str, file: TextIO | None = None) -> None:
    """Print text, with its lines wrapped on a terminal; elsewhere as it is, for other programs to read."""
    file = file or sys.stdout
    print(_wrapped(text.splitlines()) if file.isatty() else text, file=file, flush=True)


def _wrapped(lines: Iterable[str]) -> str:
    width = min(shutil.get_terminal_size().columns, SOURCE)
    return "\n".join(row.rstrip() for line in lines for row in _rows(line, width))


class Folded(str):
    """Text whose lines tyro does not join, as it does with those of a description."""

    __slots__ = ()

    def split(self, *_: Any) -> list[str]:
        return [self]


def _is_command(line: str) -> bool:
    program, _, rest = re.sub(r"Examples?: ", "", line.strip()).partition(" ")
    return program in PROGRAMS and not rest.partition(" ")[0].endswith(":")


def _rows(line: str, width: int) -> list[str]:
    """Return the line in rows of at most `width` columns, but for longer words."""
    if len(line) <= width:
        return [line]
    start = len(line) - len(line.lstrip())
    beside = re.match(r"\s*\S.*?\s{2,}(?=\S)", line)
    if beside and width - len(beside[0]) < BESIDE:
        return [*_rows(beside[0].rstrip(), width), *_rows(f"{'':{start + 4}}{line[len(beside[0]) :]}", width)]
    end = "" if beside or not _is_command(line) else " \\"
    hang = " " * (len(beside[0]) if beside else start + 4 * bool(end))
    whole = re.sub(r"(--\S+) (?!-)", "\\1\xa0", line) if end else line  # a flag stays with its value
    rows = textwrap.wrap(
        whole, width - len(end), subsequent_indent=hang, break_long_words=False, break_on_hyphens=False
    )
    rows = [row.replace("\xa0", " ") for row in rows]
    return [row + end for row in rows[:-1]] + rows[-1:]


def overview(program: str, text: str, groups: Mapping[str, Mapping[str, str]]) -> str:
    """Return the help of a program: text, its commands by group with a line on each, and the other programs."""
    groups = {**groups, "Other programs": {name: line for name, line in PROGRAMS.items() if name != program}}
    wide = max(len(name) for commands in groups.values() for name in commands)
    parts = [text.strip("\n")]
    for title, commands in groups.items():
        parts += ["", title, *(f"  {name:{wide}}  {line}" for name, line in commands.items())]
    return fold("\n".join(parts))
