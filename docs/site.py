"""Hooks of MkDocs: the help of commands, links that leave docs/, live pages."""

import contextlib
import io
import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
HELP = re.compile(r"^<!-- help: (\S+)(.*?) -->$", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")
PROGRAMS = {
    "llmtrain": "llmtrain.cli",
    "toybandit": "toybandit.cli",
    "entrostat": "entrostat_app.entrostat_command",
    "entrostat-app": "entrostat_app.launch",
}
LIVE = {
    "playground": ("--playground",),
    "course": ("--course",),
    "centred": ("--claim", "thm1-centred.shift=0.5"),
}
"""Arguments of `entrostat publish` for each live page, by folder below published/."""


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Return the page's Markdown with the help of commands, and without links that lead out of the site."""
    here = Path(page.file.abs_src_path).parent

    def link(found: re.Match[str]) -> str:
        text, target, _ = found.groups()
        if files.get_file_from_path(os.path.normpath(Path(page.file.src_uri).parent / target)):
            return found[0]
        there = (here / target).resolve()
        if not there.exists():
            return found[0]  # for MkDocs to complain about
        path = f"`{there.relative_to(ROOT)}`"
        return path if text.strip("`") in path else f"{text} ({path})"

    return HELP.sub(lambda found: help_of(found[1], found[2].split()), LINK.sub(link, markdown))


def help_of(program: str, words: list[str]) -> str:
    """Return what a command prints for --help, as a block of code."""
    said = io.StringIO()
    before = dict(os.environ)
    os.environ |= {"COLUMNS": "84", "NO_COLOR": "1", "TERM": "dumb"}
    try:
        with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
            import_module(PROGRAMS[program]).main([*words, "--help"])
    finally:
        os.environ.clear()
        os.environ.update(before)
    if not said.getvalue().strip():
        raise ValueError(f"{program} {' '.join(words)} --help printed nothing")
    return f"```text\n{said.getvalue().rstrip()}\n```"


def on_post_build(config: Any) -> None:
    """Write the live pages beside the others."""
    publish = import_module("entrostat_app.entrostat_command").main
    for name, words in LIVE.items():
        out = str(Path(config["site_dir"]) / "published" / name)
        if publish(["publish", *words, "--out", out, "--overwrite"]):
            raise ValueError(f"entrostat publish {' '.join(words)} failed")
