"""Tab completion, in bash."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from entrostat.__main__ import main
from entrostat.settings.commandline_completion import SCRIPT

ASK = """
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_entrostat "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
echo "${COMPREPLY[@]}"
"""
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def complete(*words: str) -> list[str]:
    """Return what the last word may become."""
    command = ["bash", "-c", SCRIPT + ASK, "bash", *words]
    done = subprocess.run(command, env=os.environ | {"PATH": PATH}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("toybandit", path=PATH), reason="needs the installed programs")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("toybandit", "re"), ["reproduce"]),
        (("llmtrain", "re"), ["resume", "recipes"]),
        (("entrostat", "entro"), []),
        (("entrostat", "comp"), ["completion"]),
        (("toybandit", "run", "--up"), ["--update"]),
        (("toybandit", "run", "--seeds", "3", "--update", ""), ["None", "sgd", "npg", "adam"]),
        (("toybandit", "run", "--dtype", "float3"), ["float32"]),
        (("toybandit", "run", "--out", "runs/x"), []),
        (("toybandit", "verify", "law", ""), []),
        (("toybandit", "nothing", "--"), []),
        (("entrostat-app", "--p"), ["--port"]),
    ],
)
def test_a_word_is_completed(words, found):
    assert complete(*words) == found


def test_the_program_prints_it(capsys):
    assert main(["completion"]) == 0
    said = capsys.readouterr().out
    assert said == SCRIPT + "\n"
    assert said.endswith("complete -o default -F _entrostat entrostat toybandit llmtrain entrostat-app\n")
