"""Help fits the terminal."""

import sys

import pytest

from entrostat.settings.commandline_help import PROGRAMS, Folded, fold, overview, tell

PARAGRAPH = """\
A first line of the source that is as long as the source lets lines be, so that it is broken at 120 columns where the
next word had no room.
A line that ended before.

    llmtrain train --preset countdown-cpu --controller clip_higher+steer --set lambda_min=0.8
  runs/x                    what it is, in more words than there is room for beside it
"""


@pytest.mark.parametrize(
    ("columns", "lines"),
    [
        (
            "60",
            [
                "A first line of the source that is as long as the source",
                "lets lines be, so that it is broken at 120 columns where the",
                "next word had no room.",
                "A line that ended before.",
                "",
                "    llmtrain train --preset countdown-cpu \\",
                "        --controller clip_higher+steer \\",
                "        --set lambda_min=0.8",
                "  runs/x                    what it is, in more words than",
                "                            there is room for beside it",
            ],
        ),
        (
            "50",
            [
                "A first line of the source that is as long as the",
                "source lets lines be, so that it is broken at 120",
                "columns where the next word had no room.",
                "A line that ended before.",
                "",
                "    llmtrain train --preset countdown-cpu \\",
                "        --controller clip_higher+steer \\",
                "        --set lambda_min=0.8",
                "  runs/x",
                "      what it is, in more words than there is room",
                "      for beside it",
            ],
        ),
    ],
)
def test_text_is_wrapped_anew(columns, lines, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    assert fold(PARAGRAPH).splitlines() == lines


def test_a_title_is_no_command(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert (
        fold("llmtrain plan: an estimate of memory and time").splitlines()[0]
        == "llmtrain plan: an estimate of memory and"
    )


def test_lines_are_not_wider_than_the_source(monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    assert max(map(len, fold("word " * 100).splitlines())) == 119


def test_an_overview_has_the_commands_and_the_other_programs(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    groups = {"First": {"run": "Run it."}, "Second": {"look-at": "Look at it."}}
    assert overview("toybandit", "What it is.", groups).splitlines()[:8] == [
        "What it is.",
        "",
        "First",
        "  run            Run it.",
        "",
        "Second",
        "  look-at        Look at it.",
        "",
    ]
    assert "toybandit" not in overview("toybandit", "", groups)
    assert all(f"  {name} " in overview("", "", groups) for name in PROGRAMS)


@pytest.mark.parametrize(("terminal", "lines"), [(True, 4), (False, 1)])
def test_what_other_programs_read_keeps_its_lines(terminal, lines, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    tell("word " * 40)
    assert len(capsys.readouterr().out.splitlines()) == lines


def test_tyro_keeps_the_lines_of_a_description():
    text = Folded("one\ntwo\n\nthree")
    assert text == "one\ntwo\n\nthree"
    assert text.split("\n") == [text]
