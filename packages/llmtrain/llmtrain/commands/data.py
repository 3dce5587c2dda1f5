"""llmtrain data: overview of question files.

llmtrain data math500.parquet gsm8k_train.jsonl --first
"""

from pathlib import Path
from statistics import median

from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from entrostat.settings.commandline import Arguments

from ..data.question import Question
from ..data.read import Read
from ..data.reading_flags import add_flags, read_as_told

SKIPPED_SHOWN = 5


def main(args: list[str]) -> int:
    """Print a table of question files, and return exit code 0."""
    parser = Arguments(prog="llmtrain data", description=__doc__)
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="parquet, jsonl, json, a folder, or a name on the HF hub"
    )
    parser.add_argument("--first", action="store_true", help="print the first question of each file in full")
    add_flags(parser)
    given = parser.parse_args(args)
    found = {name: read_as_told(name, given) for name in given.files}
    console = Console()
    console.print(overview(found))
    for name, (questions, skipped) in found.items():
        for line in skipped[:SKIPPED_SHOWN]:
            console.print(f"skipped: {line}", markup=False, highlight=False, soft_wrap=True)
        if len(skipped) > SKIPPED_SHOWN:
            console.print(
                f"skipped: {len(skipped) - SKIPPED_SHOWN:,} more of {name}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
        if given.first:
            _print_whole(console, questions[0])
    return 0


def overview(found: dict[str, Read]) -> Table:
    """Return a table with one line per file. Prompt lengths are in characters, without roles."""
    caption = "characters per prompt: median, maximum"
    table = Table(box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0), caption=caption, caption_justify="left")
    table.add_column("file", overflow="fold")
    for heading in ("rows", "questions", "repeats", "skipped", "characters"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("form")
    table.add_column("source", overflow="fold")
    for name, (questions, skipped) in found.items():
        repeats, sizes = [q.repeats for q in questions], [len(q.text) for q in questions]
        chat = sum(not isinstance(q.prompt, str) for q in questions)
        sources = sorted({q.source for q in questions})
        table.add_row(
            escape(Path(name).name or name),
            f"{sum(repeats) + len(skipped):,}",
            f"{len(questions):,}",
            str(min(repeats)) if len(set(repeats)) == 1 else f"{min(repeats)} to {max(repeats)}",
            f"{len(skipped):,}",
            f"{median(sizes):,.0f}, {max(sizes):,}",
            "chat"
            if chat == len(questions)
            else "text"
            if not chat
            else f"chat {chat:,}, text {len(questions) - chat:,}",
            escape(", ".join(sources[:3]) + (f" and {len(sources) - 3} more" if len(sources) > 3 else "")),
        )
    return table


def _print_whole(console: Console, question: Question) -> None:
    console.rule(escape(question.where), align="left")
    if isinstance(question.prompt, str):
        console.print(question.prompt, markup=False, highlight=False)
    else:
        for message in question.prompt:
            console.print(f"[{message['role']}]\n{message['content']}", markup=False, highlight=False)
    console.print(f"\nground truth: {question.ground_truth}", markup=False, highlight=False)
    if question.solution is not None:
        console.print(f"solution: {question.solution}", markup=False, highlight=False)
