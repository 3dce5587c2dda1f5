"""Unit tests in a subprocess, and programs that would do harm."""

import os
import subprocess
import sys
import time

import pytest

from llmtrain.verifiers import get_verifier
from llmtrain.verifiers.python_tests import OPEN, PythonVerifier, program

pytestmark = pytest.mark.slow

TESTS = ["assert add(1, 2) == 3", "assert add(-1, 1) == 0"]


@pytest.fixture(scope="module")
def verify():
    with get_verifier("python", workers=1, timeout=2.0, memory_mib=512) as verifier:
        yield verifier


@pytest.mark.parametrize(
    ("code", "correct", "reason"),
    [
        ("def add(a, b): return a + b", True, "all tests passed"),
        ("import os; os.write(1, b'\\xff'); add = int.__add__", True, "all tests passed"),
        ("import os; os.write(2, b'\\xff')", False, "name 'add' is not defined"),
        ("def add(a, b): return a - b", False, "AssertionError"),
        ("def add(a, b) return", False, "SyntaxError"),
        ("import sys; sys.exit(0)", False, "exit code 0 before its tests"),
        ("import os; os._exit(0)", False, "exit code 0 before its tests"),
        ("import sys; sys.exit(-1)", False, "exit code 255 before its tests"),
        ("import os; os.abort()", False, "SIGABRT"),
        ("while True: pass", False, "timed out after 2 s"),
        ("held = bytearray(1 << 32)", False, "MemoryError"),
        ("f = open('big', 'wb')\nwhile True: f.write(bytes(1 << 20))", False, "File too large"),
        ("while True: print('x' * 1000)", False, "more than 16 MiB of output"),
    ],
)
def test_programs(verify, code, correct, reason):
    verdict = verify([f"Here it is:\n```python\n{code}\n```\nDone."], [TESTS])[0]
    assert verdict.correct is correct
    assert reason in verdict.reason
    assert verdict.extracted == code


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.path.exists('stdout') and os.unlink('stdout')\nos.mkfifo('stdout')",
        "import os, shutil\nshutil.rmtree(os.getcwd())",
        "import os\nos.path.exists('stdout') and os.unlink('stdout')\nos.mkdir('stdout')",
        "import os\nos.path.exists('stdout') and os.unlink('stdout')\nos.symlink('/dev/zero', 'stdout')",
        "import os\nos.path.exists('stderr') and os.unlink('stderr')\nos.symlink('/etc/passwd', 'stderr')\nos._exit(1)",
    ],
)
def test_a_program_that_puts_files_in_the_place_of_its_output(verify, code):
    """The rest of the batch is judged, soon, and nothing of the machine comes back as the reason."""
    start = time.monotonic()
    bad, good = verify([code, "def add(a, b): return a + b"], [TESTS] * 2)
    assert time.monotonic() - start < 60
    assert not bad.correct
    assert "root:" not in bad.reason
    assert good.correct


def test_a_problem_of_the_machine_costs_its_own_item_only(verify, monkeypatch):
    def fails(self, code, checks):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(PythonVerifier, "_judge", fails)
        verdict = verify(["x = 1"], [TESTS])[0]
    assert verdict.reason == "the program could not be run: No space left on device"
    assert verify.failures["crash"] == 1


def test_a_process_that_keeps_the_output_open_is_not_waited_for(verify):
    code = "import os, time\nif not os.fork():\n    os.setsid()\n    time.sleep(99)\ndef add(a, b): return a + b"
    assert verify([code], [TESTS])[0].correct


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels have other limits")
def test_a_fork_bomb_is_stopped_and_leaves_nothing(verify):
    bomb = "import os, time\nwhile True:\n    try: os.fork()\n    except OSError: time.sleep(0.05)"
    start = time.monotonic()
    assert "timed out" in verify([bomb], [TESTS])[0].reason
    assert time.monotonic() - start < 12
    time.sleep(0.3)
    assert "-s -P -B program.py" not in subprocess.run(["ps", "axo", "args"], capture_output=True, text=True).stdout


def test_the_environment_is_empty(verify, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "x")
    code = (
        "import os, sys\nassert not set(os.environ) - {'LC_CTYPE', 'PYTHONHASHSEED'}, set(os.environ)\n"
        "assert not {'', os.getcwd()} & set(sys.path), sys.path\ndef add(a, b): return a + b"
    )
    assert verify([code], [TESTS])[0].correct


SECRET = "a secret of the machine"


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="root on Linux can make namespaces")
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise ValueError(open({file!r}).read())", "No such file or directory"),
        ("import os; raise ValueError(os.listdir('/etc'))", "ValueError: ["),
        ("open({file!r}, 'w').write('x')", "No such file or directory"),
        ("open('/etc/passwd', 'w')", "Read-only file system"),
        ("import sys; open(sys.base_prefix + '/x', 'w')", "Read-only file system"),
        ("import os; raise ValueError(os.listdir('/home'))", "No such file or directory"),
        ("import os; raise ValueError(os.listdir('/proc'))", "No such file or directory"),
    ],
)
def test_the_file_system_holds_the_interpreter_and_one_folder(verify, tmp_path, code, reason):
    file = tmp_path / "secret"
    file.write_text(SECRET)
    verdict = verify([code.format(file=str(file))], [TESTS])[0]
    assert not verdict.correct
    assert reason in verdict.reason
    assert file.read_text() == SECRET


def test_temporary_files_and_installed_packages_can_be_used(verify):
    code = "import tempfile, numpy\ntempfile.TemporaryFile().write(b'x')\nadd = lambda a, b: int(numpy.add(a, b))"
    assert verify([code], [TESTS])[0].correct


def test_a_machine_without_namespaces_is_said(monkeypatch, capsys):
    monkeypatch.setattr(PythonVerifier, "_sees_files", lambda self: True)
    PythonVerifier(workers=1).close()
    assert capsys.readouterr().err == f"{OPEN}\n"


def test_a_set_has_the_same_order_in_each_run(verify):
    code = "raise ValueError(' '.join(set('abcdefghij')))"
    assert len({verdict.reason for verdict in verify([code] * 3, [TESTS] * 3)}) == 1


def test_the_folder_is_removed(verify, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = "import os\nopen('here', 'w').write('x')\nraise ValueError(os.getcwd())"
    assert "llmtrain-check" in verify([code], [TESTS])[0].reason
    assert not list(tmp_path.iterdir())


def test_the_last_closed_block_counts():
    assert program("```python\na\n```\n```py\nb\n```\n```python\nc") == "b"
    assert program("x = 1") == "x = 1"


CODE = "```python\ndef f(): return 2\n```"


@pytest.mark.parametrize(
    "response",
    [
        f"Install:\n```bash\npip install x\n```\nThen:\n{CODE}",
        f"Input:\n```json\n{{}}\n```\n{CODE}\nDone.",
        f"{CODE}\nOutput:\n```\n2\n```\n",
        f"{CODE}\nRun:\n```bash\npython a.py\n```\nIt prints\n```text\n2\n```\n",
        f"```bash\npip install x\n{CODE}",
        f"```\n2\n```\nis what this says:\n{CODE}",
        "```python3\ndef f(): return 2\n```",
        "``` Python title=f\ndef f(): return 2\n```",
        "```{.python}\ndef f(): return 2\n```",
        "```python\r\ndef f(): return 2\r\n```\r\nDone.",
        "```\nnot this\n```\n```\ndef f(): return 2\n```\n```sh\npython a.py\n```",
    ],
)
def test_other_blocks_are_not_the_program(response):
    assert program(response) == "def f(): return 2"


@pytest.mark.parametrize("truth", ["", [], [1], None, {"a": 1}])
def test_a_ground_truth_without_tests(verify, truth):
    with pytest.raises(ValueError, match="unit tests"):
        verify(["x = 1"], [truth])
