from dataclasses import dataclass

import pytest

from entrostat.__main__ import main
from entrostat.commandline import one_line_errors, parse_flags, parse_settings


def test_settings_are_what_they_look_like():
    items = ["kp=2", "ki=1e-3", "anti_windup=false", "estimator=exact", "steer.lambda_min=0.7"]
    expected = {"kp": 2, "ki": 0.001, "anti_windup": False, "estimator": "exact", "steer.lambda_min": 0.7}
    assert parse_settings(items) == expected
    with pytest.raises(ValueError, match="expected key=value, got 'kp'"):
        parse_settings(["kp"])
    with pytest.raises(ValueError, match="kp is set twice"):
        parse_settings(["kp=1", "kp=2"])
    with pytest.raises(ValueError, match=r"^kp: '\[1' cannot be read; give a number") as caught:
        parse_settings(["kp=[1"])
    assert "\n" not in str(caught.value)


@dataclass(frozen=True)
class Flags:
    steps: int = 3
    """How many."""


def test_flags():
    def parse(*args):
        return parse_flags(Flags, args, prog="try", description="A try.")

    assert parse("--steps", "5").steps == 5
    with pytest.raises(ValueError, match="try: unknown option --stepz"):
        parse("--stepz", "5")
    with pytest.raises(ValueError, match=r"try: .*steps") as caught:
        parse("--steps", "many")
    assert "\n" not in str(caught.value)


def test_help_teaches(capsys):
    with pytest.raises(SystemExit) as stop:
        parse_flags(Flags, ["--help"], prog="try", description="A try.")
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert "A try." in out
    assert "How many." in out


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
        (KeyboardInterrupt(), 130, "stopped\n"),
    ],
)
def test_files_that_cannot_be_used_and_ctrl_c_take_one_line(raised, code, said, capsys):
    @one_line_errors
    def broken(args):
        raise raised

    assert broken([]) == code
    assert capsys.readouterr().err == said


def test_other_errors_keep_their_traceback():
    @one_line_errors
    def broken(args):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        broken([])


def test_the_list_shows_every_controller(capsys):
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert "clip_higher" in out
    assert "coef_max" in out
    assert "w_reinforce" in out
    assert main(["show"]) == 2
    assert "try: list, describe NAME, docs" in capsys.readouterr().err


def test_describe_shows_every_kind_that_has_the_name(capsys):
    assert main(["describe", "grpo"]) == 0
    out = capsys.readouterr().out
    assert "ppo (surrogate)" in out
    assert "grpo (advantage)" in out
    assert "eps_high = 0.2   How far above 1" in out
    assert "preset released: dual_clip=10.0" in out
    assert main(["describe", "rloo"]) == 0
    assert "rloo (advantage)" in capsys.readouterr().out
    assert main(["describe", "gae"]) == 2
    assert "unknown name 'gae'; choose from " in capsys.readouterr().err
