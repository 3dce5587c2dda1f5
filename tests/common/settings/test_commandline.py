import io
import os
import subprocess
import sys
import warnings
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Literal

import pytest

from entrostat.__main__ import COMMANDS, main
from entrostat.settings.commandline import UNREAD, Arguments, one_line_errors, parse_flags, parse_settings, writing


def test_settings_are_what_they_look_like():
    items = ["kp=2", "ki=1e-3", "anti_windup=false", "estimator=exact", "steer.lambda_min=0.7"]
    expected = {"kp": 2, "ki": 0.001, "anti_windup": False, "estimator": "exact", "steer.lambda_min": 0.7}
    assert parse_settings(items) == expected
    assert parse_settings(["dual_clip=inf", "omega_low=-inf"]) == {"dual_clip": inf, "omega_low": -inf}
    unread = r"kp: '\[1' cannot be read; give a number, true, false or a name"
    for wrong, message in (("kp", "expected key=value, got 'kp'"), ("kp=1 kp=2", "kp is set twice"), ("kp=[1", unread)):
        with pytest.raises(ValueError, match=rf"^{message}\Z"):
            parse_settings(wrong.split())


@dataclass(frozen=True)
class Part:
    save_every: int | None = None
    betas: tuple[float, float] = (0.9, 0.95)
    shards: tuple[int, ...] = ()


@dataclass(frozen=True)
class Wary:
    """Sizes."""

    size: int = 0

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError("wary.size must not be negative")


@dataclass(frozen=True)
class Flags:
    steps: int = 3
    """Number of steps."""
    lr: float = 0.1
    quick: bool = False
    kind: Literal["a", "b"] = "a"
    form: Literal["", "a", "b"] = ""
    part: Part = Part()
    wary: Wary = Wary()


@dataclass(frozen=True)
class Required:
    grid: Path
    """A file whose description is long enough to be broken into several lines: of a grid (or two)."""
    out: Path
    """Folder to write."""


def parse(*args):
    return parse_flags(Flags, args, prog="try", description="A try.", default=Flags())


def test_flags():
    assert parse("--steps", "5").steps == 5
    assert (parse("--form", "").form, parse("--form=a", "--kind", "b").kind) == ("", "b")
    assert parse("--part.save_every", "None").part.save_every is None
    assert parse("--part.save_every", "5", "--part.betas", "0", "1").part == Part(save_every=5, betas=(0, 1))


class Terminal(io.TextIOWrapper):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("columns", "stdout", "encoding"),
    [("80", io.TextIOWrapper, "ascii"), ("30", io.TextIOWrapper, "utf-8"), ("80", Terminal, "utf-8")],
)
@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("--stepz 5", "unknown option --stepz; did you mean --steps?"),
        ("--xyz 5", "unknown option --xyz; try --help lists what there is"),
        ("--quick maybe", "unknown option maybe; try --help lists what there is"),
        ("--steps many", "--steps must be a valid integer; got 'many'"),
        ("--steps 3.5 more", "--steps must be a valid integer; got '3.5'"),
        ("--steps=many", "--steps must be a valid integer; got 'many'"),
        ("--steps=", "--steps must be a valid integer; got ''"),
        ("--steps 1 --steps many", "--steps must be a valid integer; got 'many'"),
        ("--lr fast", "--lr must be a valid number; got 'fast'"),
        ("--lr " + 100 * "9x", f"--lr must be a valid number; got '{6 * '9x'}...x{6 * '9x'}'"),
        ("--part.save_every x", "--part.save_every must be a valid integer; got 'x'"),
        ("--part.save-every x", "--part.save_every must be a valid integer; got 'x'"),
        ("--lr inf", "--lr must be finite; got inf"),
        ("--kind c", "--kind must be one of a, b; got 'c'"),
        ("--part.betas 0 x", "--part.betas[1] must be a valid number; got 'x'"),
        ("--part.shards 0 x --steps 5", "--part.shards[1] must be a valid integer; got 'x'"),
        ("--steps", "Missing value for argument '--steps'. Expected 1 values."),
        ("--steps --lr 1", "Missing value for argument '--steps'. Expected 1 values."),
        ("--part.betas 0", "Missing value for argument '--part.betas'. Expected 2 values."),
        ("--wary.size -1", "wary.size must not be negative"),
    ],
)
def test_errors_of_flags_are_told_in_our_words(args, message, columns, stdout, encoding, monkeypatch):
    """However tyro draws its frame: with boxes, without, or in colours."""
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", stdout(io.BytesIO(), encoding=encoding))
    with pytest.raises(ValueError, match=r"^[^\n]*$") as caught:
        parse(*args.split(" "))
    assert str(caught.value) == f"try: {message}"


def test_required_flags_are_told_without_a_frame():
    with pytest.raises(ValueError, match=r"^try: Missing from try: --grid PATH .*--out PATH .*Unrecognized.* --stepz$"):
        parse_flags(Required, ["--stepz"], prog="try", description="A try.")
    with pytest.raises(ValueError, match=r"^try: Missing from try: --out PATH Folder to write\. \(required\)$"):
        parse_flags(Required, ["--grid", "x"], prog="try", description="A try.")


def test_help_teaches(capsys):
    with pytest.raises(SystemExit) as stop:
        parse_flags(Flags, ["--help"], prog="try", description="A try.")
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert "A try." in out
    assert "Number of steps." in out
    assert "--kind {a,b}" in out
    assert "--form {'',a,b}" in out
    assert "Sizes." in out


def test_errors_are_one_line_and_exit_code_2(capsys):
    @one_line_errors
    def broken(args):
        raise ValueError("no such thing: " + args[0])

    assert broken(["x"]) == 2
    assert capsys.readouterr().err == "error: no such thing: x\n"


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (FileNotFoundError(2, "No such file or directory", "a/b"), 2, "error: a/b: No such file or directory\n"),
        (PermissionError(13, "Permission denied", "a"), 2, "error: a: Permission denied\n"),
        (OSError(28, "No space left on device"), 2, "error: No space left on device\n"),
        (KeyboardInterrupt(), 130, "stopped\n"),
    ],
)
def test_files_that_cannot_be_used_and_ctrl_c_take_one_line(raised, code, said, capsys):
    @one_line_errors
    def broken(args):
        raise raised

    assert broken([]) == code
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("raised", "named"),
    [
        (OSError(28, "No space left on device"), "out/a.json"),
        (OSError(28, "No space left on device", "out/part"), "out/part"),
        (OSError(9, "Bad file descriptor"), None),
    ],
)
def test_what_is_written_is_named_where_the_disk_is_full(raised, named):
    with pytest.raises(OSError, match=raised.strerror) as caught, writing(Path("out/a.json")):
        raise raised
    assert caught.value.filename == named


def test_other_errors_keep_their_traceback():
    @one_line_errors
    def broken(args):
        raise OSError(9, "Bad file descriptor")

    with pytest.raises(OSError, match="Bad file"):
        broken([])


@pytest.mark.parametrize(
    "words", [pytest.param("entrostat docs", marks=pytest.mark.slow), "toybandit run --help", "llmtrain train --help"]
)
def test_whoever_reads_the_output_may_go(words):
    """Such as `head`, and less."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-m", *words.split()], stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (UNREAD, "")


def test_a_broken_pipe_of_another_kind_is_told():
    @one_line_errors
    def broken(args):
        raise BrokenPipeError(32, "Broken pipe")

    with pytest.raises(BrokenPipeError):
        broken([])


def test_the_list_shows_every_controller(capsys):
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert "clip_higher" in out
    assert "coef_max" in out
    assert "w_reinforce" in out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["lst"], "unknown command 'lst'; did you mean list?"),
        (["xyzzy"], "unknown command 'xyzzy'; choose from list, describe, check-controller, docs, publish, completion"),
        (["describe"], "entrostat describe needs a name; entrostat list shows them"),
        (["list", "steer"], "entrostat list does not take steer"),
    ],
)
def test_commands_that_cannot_be(args, said, capsys):
    assert main(args) == 2
    assert capsys.readouterr().err == f"error: {said}\n"


def test_describe_shows_every_kind_that_has_the_name(capsys):
    assert main(["describe", "grpo"]) == 0
    out = capsys.readouterr().out
    assert "ppo (surrogate)" in out
    assert "grpo (advantage)" in out
    assert "eps_high = 0.2, in [0, ∞)   Width of the clip range above 1" in out
    assert "preset released: dual_clip=10.0" in out
    assert main(["describe", "rloo"]) == 0
    assert "rloo (advantage)" in capsys.readouterr().out
    assert main(["describe", "gae"]) == 2
    assert "unknown name 'gae'; did you mean " in capsys.readouterr().err
    assert main(["describe", "xyzzy"]) == 2
    assert "unknown name 'xyzzy'; choose from " in capsys.readouterr().err


@pytest.mark.parametrize("args", [[], ["--help"], ["-h"], ["list", "--help"], ["describe", "-h"]])
def test_help_is_given_wherever_it_is_asked_for(args, capsys):
    assert main(args) == 0
    out = capsys.readouterr().out
    assert out.startswith("entrostat: controllers, surrogates and advantages by name.\n")
    assert all(f"\n  {name} " in out for name in (*COMMANDS, "toybandit", "llmtrain", "entrostat-app"))


class OursWarning(UserWarning):
    """Warning of a program."""


OursWarning.__module__ = "entrostat.somewhere"


def test_warnings_of_ours_are_told_without_their_place(monkeypatch, capsys):
    @one_line_errors
    def warned(args):
        for kind in (OursWarning, UserWarning):
            print(warnings.formatwarning("heed this", kind, "file.py", 7, "code"), end="")
        return 0

    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    assert warned([]) == 0
    assert capsys.readouterr().out == "warning: heed this\nfile.py:7: UserWarning: heed this\n  code\n"


def test_mistakes_in_arguments_are_of_one_line(capsys):
    parser = Arguments(prog="judge", description="What it does.\n\n    judge --lines 3 FILE\n")
    parser.add_argument("file")
    parser.add_argument("--lines", type=int)
    assert parser.parse_args(["a", "--lines", "2"]).lines == 2
    for args, said in (
        ([], "the following arguments are required: file"),
        (["a", "--lines", "x"], "--lines: invalid int value: 'x'"),
        (["a", "--lines"], "--lines: expected one argument"),
        (["a", "--line", "2"], "unrecognized arguments: --line 2"),
    ):
        with pytest.raises(ValueError, match=f"^judge: {said}; judge --help lists what there is$"):
            parser.parse_args(args)
    with pytest.raises(SystemExit):
        parser.parse_args(["--help"])
    assert "What it does.\n\n    judge --lines 3 FILE\n" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("program", ["toybandit", "llmtrain"])
def test_help_ends_however_narrow_the_terminal_is(program):
    command = [sys.executable, "-m", program, "run" if program == "toybandit" else "train", "--help"]
    done = subprocess.run(command, env=os.environ | {"COLUMNS": "5"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "--out" in done.stdout


@pytest.mark.slow
def test_signs_that_a_terminal_has_not_are_written_as_others(tmp_path):
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "toybandit", "run", "--rollouts", "3", "--out", str(tmp_path / "run")]
    done = subprocess.run(command, env=os.environ | ascii_only, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "entropy" in done.stdout
    assert "?" in done.stdout
