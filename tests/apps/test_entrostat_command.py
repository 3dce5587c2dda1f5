"""`entrostat`, and what it has in common with the other programs."""

import re
from contextlib import suppress

import pytest

from entrostat.__main__ import program
from entrostat_app import entrostat_command, launch
from llmtrain import cli as llmtrain
from toybandit import cli as toybandit

PROGRAMS = {
    "llmtrain": (llmtrain, ["", *llmtrain.COMMANDS]),
    "toybandit": (toybandit, ["", *toybandit.COMMANDS]),
    "entrostat": (entrostat_command, ["", "publish"]),
    "entrostat-app": (launch, [""]),
}
"""Programs with their commands that have help of their own."""


def printed(program, args, capsys):
    """Return what a program prints before it ends with exit code 0."""
    code = 0
    with suppress(SystemExit):
        code = PROGRAMS[program][0].main(args)
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return out


def test_the_module_is_the_installed_program():
    """With `publish`, which is not the library's own."""
    assert program() is entrostat_command.main


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_bare_program_prints_its_help(program, capsys):
    out = printed(program, [], capsys)
    assert out == printed(program, ["--help"], capsys)
    assert all(f"  {command} " in out for command in PROGRAMS[program][1])


@pytest.mark.parametrize(
    ("program", "command"), [(program, command) for program, (_, commands) in PROGRAMS.items() for command in commands]
)
def test_every_help_fits_80_columns(program, command, monkeypatch, capsys):
    """But for words that cannot be broken, such as a long list of choices."""
    monkeypatch.setenv("COLUMNS", "80")
    out = printed(program, [*command.split(), "--help"], capsys)
    assert [line for line in out.splitlines() if len(line) > 80 and not re.search(r"\S{60,}", line)] == []
    assert "\n\n\n" not in out
