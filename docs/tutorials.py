"""Runs the tutorials, and writes what their blocks print below them.

    python docs/tutorials.py               run all pages of docs/tutorials, and fail if a page shows something else
    python docs/tutorials.py --update      write what the blocks print into the pages

A block of `python` runs in the namespace of its page, one of `sh` in bash; with title="NAME" it is written to that file
instead. All run in one empty folder. A block of `text` below a block is what it printed; if its title is "one run",
other numbers are accepted in it, since training differs between machines. Pictures that a block saves are moved beside
the page by --update.
"""

import argparse
import contextlib
import io
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
BLOCK = re.compile(
    r'^```(?P<kind>python|sh)(?: title="(?P<file>[^"]+)")?\n(?P<code>.*?)^```\n'
    r'(?:\n```text(?P<one> title="one run")?\n(?P<shown>.*?)^```\n)?',
    re.MULTILINE | re.DOTALL,
)
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


def run_shell(code: str) -> str:
    """Return what commands print, errors included."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    here = os.environ | {"PATH": path, "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
    command = ["bash", "-e", "-o", "pipefail", "-c", code]
    done = subprocess.run(command, env=here, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode} of\n{code}\n{done.stdout}")
    return done.stdout


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
                for picture in folder.glob("*.png"):
                    shutil.move(picture, page.parent / picture.name)
            elif after != before:
                stale.append(page.name)
    if stale:
        print(f"other output than shown: {', '.join(stale)}; python docs/tutorials.py --update")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
