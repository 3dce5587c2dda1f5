"""Runs the tutorials, and writes what their blocks print below them.

    python docs/tutorials.py               run all pages of docs/tutorials, and fail if a page shows something else
    python docs/tutorials.py --update      write what the blocks print into the pages

A block of `python` runs in the namespace of its page, one of `sh` in bash; with title="NAME" it is written to that file
instead. All run in one empty folder. A block of `text` below a block is what it printed; if its title is "one run",
other numbers are accepted in it, since training differs between machines. Pictures that a block saves are moved beside
the page by --update, which also writes the pages in NOTEBOOKS as notebooks.
"""

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGES = sorted((Path(__file__).parent / "tutorials").glob("*.md"))
NOTEBOOKS = {"collapse": "%pip install -q './entrostat[sim]'"}
"""Pages that are notebooks too, with their first cell."""
BLOCK = re.compile(
    r'^```(?P<kind>python|sh)(?: title="(?P<file>[^"]+)")?\n(?P<code>.*?)^```\n'
    r'(?:\n```text(?P<one> title="one run")?\n(?P<shown>.*?)^```\n)?',
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)#\s]+)[^)]*\)")
PICTURE = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n", re.MULTILINE)
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def run_page(text: str, anew: bool = True) -> str:
    """Run the blocks of a page in the working folder; return the page with what they print.

    With `anew` false, what is shown of one run stays if only its numbers differ. Raises RuntimeError, with its output,
    for a command that fails.
    """
    namespace: dict[str, Any] = {"__name__": "tutorial"}

    def run(block: re.Match[str]) -> str:
        kind, file, code = block["kind"], block["file"], block["code"]
        head = f'```{kind} title="{file}"' if file else f"```{kind}"
        said = ""
        if file:
            Path(file).write_text(code, encoding="utf-8")
        elif kind == "sh":
            said = run_shell(code)
        else:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, "tutorial", "exec"), namespace)
            said = printed.getvalue()
        if block["one"] and not anew and in_words(said) == in_words(block["shown"]):
            said = block["shown"]
        shown = f"\n```text{block['one'] or ''}\n{said.rstrip()}\n```\n" if said.strip() else ""
        return f"{head}\n{code}```\n{shown}"

    return BLOCK.sub(run, text)


def in_words(text: str) -> str:
    """Return a text without its numbers and line breaks."""
    return " ".join(NUMBER.sub(" # ", text).split())


def notebook(text: str, first: str) -> str:
    """Return a page of Python blocks as a notebook with their output, in Jupyter's format 4.4.

    Pictures are left out, since cells draw them; links to other pages become the names of their files.
    """
    cells, end = [code_cell(first)], 0
    for block in BLOCK.finditer(text):
        cells += [*text_cells(text[end : block.start()]), code_cell(block["code"], block["shown"])]
        end = block.end()
    cells += text_cells(text[end:])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 4}
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def text_cells(text: str) -> list[dict[str, Any]]:
    """Return the text between two blocks as a cell; none if it is empty."""
    text = LINK.sub(
        lambda link: f"{link[1]} (`{os.path.normpath(f'docs/tutorials/{link[2]}')}`)", PICTURE.sub("", text)
    )
    lines = text.strip().splitlines(keepends=True)
    return [{"cell_type": "markdown", "metadata": {}, "source": lines}] if lines else []


def code_cell(code: str, shown: str | None = None) -> dict[str, Any]:
    """Return a cell of code; what it printed is its output."""
    outputs = [{"output_type": "stream", "name": "stdout", "text": shown.splitlines(keepends=True)}] if shown else []
    source = code.rstrip().splitlines(keepends=True)
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": outputs, "source": source}


def run_shell(code: str) -> str:
    """Return what commands print, errors included, without what is true of this machine alone."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    here = os.environ | {"PATH": path, "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
    command = ["bash", "-e", "-o", "pipefail", "-c", code]
    done = subprocess.run(command, env=here, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode} of\n{code}\n{done.stdout}")
    return "".join(line for line in done.stdout.splitlines(keepends=True) if not line.startswith("this processor "))


@contextlib.contextmanager
def empty_folder() -> Iterator[Path]:
    """Work in an empty folder, from which modules are imported, and remove it."""
    before, searched = Path.cwd(), list(sys.path)
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        sys.path.insert(0, name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)
            sys.path[:] = searched


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the pages")
    parser.add_argument("pages", nargs="*", type=Path, default=PAGES, help="all by default")
    given = parser.parse_args()
    stale = []
    for page in (path.resolve() for path in given.pages):
        before = page.read_text(encoding="utf-8")
        with empty_folder() as folder:
            after = run_page(before, given.update)
            if given.update:
                page.write_text(after, encoding="utf-8")
                if page.stem in NOTEBOOKS:
                    page.with_suffix(".ipynb").write_text(notebook(after, NOTEBOOKS[page.stem]), encoding="utf-8")
                for picture in folder.glob("*.png"):
                    shutil.move(picture, page.parent / picture.name)
            elif after != before:
                stale.append(page.name)
    if stale:
        print(f"other output than shown: {', '.join(stale)}; python docs/tutorials.py --update")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
