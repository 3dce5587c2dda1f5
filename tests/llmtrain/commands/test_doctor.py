"""`llmtrain doctor`: real checks, and checks made to fail, hang, crash and leave processes behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from llmtrain.cli import main
from llmtrain.commands.doctor import main as doctor
from llmtrain.doctor.findings import CHECKS, Check, examine, gpu_checks

SICK = """
import os, signal, subprocess, sys, time
from pathlib import Path

def fine():
    print("a library that talks")
    os.system("echo and another")
    return "all is well"

def wrong():
    raise RuntimeError("no such device\\nsecond line")

class Fault(RuntimeError):
    fix = "buy one"

def told():
    raise Fault("no such device")

def hang():
    print("waiting for the others", file=sys.stderr, flush=True)
    time.sleep(60)

def crash():
    os.kill(os.getpid(), signal.SIGSEGV)

def leave():
    os._exit(3)

def give_up():
    sys.exit(-1)

def breed():
    # a daemon: a session of its own, and a parent that is gone
    daemon = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']," \\
        " start_new_session=True); open(sys.argv[1], 'a').write(f'{p.pid} ')"
    subprocess.run([sys.executable, "-c", daemon, os.environ["PIDS"]], check=True)
    return "left a daemon"

def breed_and_hang():
    breed()
    time.sleep(60)
"""


@pytest.fixture
def sick(tmp_path, monkeypatch):
    """Return a function that makes a check of a function above."""
    (tmp_path / "sick.py").write_text(SICK)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PIDS", str(tmp_path / "pids"))
    return lambda name, limit=10.0: Check(name, "json", "pip install it", limit, target=f"sick:{name}")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_torch_and_gloo_work_and_unneeded_cuda_is_told(capsys):
    assert main(["doctor", "torch", "gloo", "--need", "torch,gloo", "--json", "--timeout", "60"]) == 0
    found = {line["name"]: line for line in json.loads(capsys.readouterr().out)}
    assert list(found) == ["torch", "gloo"]
    assert {line["verdict"] for line in found.values()} == {"works"}
    assert "all_reduce over 2 processes" in found["gloo"]["detail"]
    assert found["torch"]["version"].startswith("2.")
    assert found["torch"]["seconds"] > 0


@pytest.mark.slow
def test_cuda_says_why_not(capsys):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("CUDA works here")
    assert main(["doctor", "cuda", "--timeout", "60"]) == 0, "nobody needs it"
    assert "Fix: " in capsys.readouterr().out
    assert main(["doctor", "cuda", "--need", "cuda", "--timeout", "60"]) == 1


@pytest.mark.parametrize(
    ("name", "verdict", "cause", "fix"),
    [
        ("wrong", "fails", "RuntimeError: no such device second line", "pip install it"),
        ("told", "fails", "no such device", "buy one"),
        ("crash", "crashes", "killed by SIGSEGV", "pip install it"),
        ("leave", "crashes", "exit code 3", "pip install it"),
        ("give_up", "crashes", "exit code 255", "pip install it"),
    ],
)
def test_what_does_not_work(sick, name, verdict, cause, fix):
    found = examine(sick(name))
    assert found.verdict == verdict
    assert cause in found.cause
    assert fix in found.fix
    assert "\n" not in found.cause + found.fix


@pytest.mark.slow
def test_it_says_what_it_is_doing(sick, capsys):
    """Where no terminal shows it: a line before each check, apart from the JSON."""
    checks = [sick("wrong"), sick("leave", 8.0)]
    doctor([], checks)
    said = capsys.readouterr().out
    assert said.index("1 of 2: wrong, up to 10 s") < said.index("2 of 2: leave, up to 8 s") < said.index("Fix: ")
    doctor(["--json"], checks)
    said = capsys.readouterr()
    assert [found["name"] for found in json.loads(said.out)] == ["wrong", "leave"]
    assert "2 of 2: leave, up to 8 s" in said.err


@pytest.mark.slow
def test_a_hanging_check_costs_its_limit(sick):
    began = time.monotonic()
    found = examine(sick("hang", 8))  # time for a process to start on a busy machine
    assert time.monotonic() - began < 50, "it would end after a minute"
    assert found.verdict == "hangs"
    assert "no answer within 8 s" in found.cause
    assert "waiting for the others" in found.cause
    assert "--timeout" in found.fix


@pytest.mark.slow
@pytest.mark.parametrize(("name", "verdict"), [("breed", "works"), ("breed_and_hang", "hangs")])
@pytest.mark.skipif(sys.platform != "linux", reason="daemons are found on Linux")
def test_no_process_stays_behind(sick, tmp_path, name, verdict):
    assert examine(sick(name, 2.5)).verdict == verdict
    (pid,) = (tmp_path / "pids").read_text().split()
    assert not alive(int(pid))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="daemons are found on Linux")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_stays_behind_the_doctor_itself(sick, tmp_path, number):
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"  # jobs in the background ignore it
        "from llmtrain.doctor.findings import Check, examine;"
        "examine(Check('b', 'json', '', 60.0, target='sick:breed_and_hang'))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL, start_new_session=True)
    pids = tmp_path / "pids"
    end = time.monotonic() + 20
    while not (pids.exists() and pids.read_text().endswith(" ")) and time.monotonic() < end:
        time.sleep(0.05)
    pid = int(pids.read_text())
    assert alive(pid)
    os.kill(process.pid, number)
    process.wait(10)
    end = time.monotonic() + 5
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(pid)


@pytest.mark.slow
def test_every_check_has_its_turn(sick, capsys):
    checks = [sick("crash"), sick("fine"), Check("gone", "no_such_package", "pip install gone")]
    assert doctor(["--json"], checks) == 0
    found = {line["name"]: line for line in json.loads(capsys.readouterr().out)}
    assert [line["verdict"] for line in found.values()] == ["crashes", "works", "not installed"]
    assert found["fine"]["detail"] == "all is well"
    assert found["gone"]["fix"] == "pip install gone"
    assert doctor(["--need", "fine"], checks) == 0
    assert doctor(["--need", "fine,gone"], checks) == 1
    out = capsys.readouterr().out
    assert "crash: killed by SIGSEGV" in out
    assert "gone: no package no_such_package. Fix: pip install gone" in out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--need", "torch,cudnn"], ["'cudnn'", "did you mean cuda"]),
        (["keras"], ["'keras'", "vllm, ray"]),
        (["--timeout", "0"], ["--timeout", "positive"]),
        (["--timeout", "nan"], ["--timeout", "positive"]),
    ],
)
def test_bad_input(args, words, capsys):
    assert main(["doctor", *args]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert all(word in err for word in words)


def test_every_check_is_there():
    from llmtrain.doctor import checks

    for check in CHECKS:
        assert callable(getattr(checks, check.name))


SKIPPED = """
from llmtrain.doctor.checks import Skip

def here(device):
    return f"tried on {device}"

def elsewhere(device):
    raise Skip("there is one GPU")
"""


@pytest.mark.slow
def test_what_cannot_be_tried_is_skipped_with_the_reason(tmp_path, monkeypatch, capsys):
    """A check may skip itself, or need another check that does not work; neither is a failure."""
    (tmp_path / "parts.py").write_text(SKIPPED)
    (tmp_path / "sick.py").write_text(SICK)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    given = {"package": "json", "install": "", "arguments": ("cpu",)}
    checks = [
        Check("here", target="parts:here", **given),
        Check("elsewhere", target="parts:elsewhere", **given),
        Check("told", "json", "", target="sick:told"),
        Check("after", target="parts:here", needs="told", **given),
        Check("before", target="parts:here", needs="here", **given),
    ]
    assert doctor([], checks) == 0
    said = capsys.readouterr().out
    assert "elsewhere: skipped, there is one GPU" in said
    assert "after: skipped, told does not work" in said
    assert said.count("tried on cpu") == 2


@pytest.mark.long
def test_gpu_checks_without_a_gpu(capsys):
    """The driver check names the missing part, checks that need it are skipped, and only named checks run."""
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("CUDA works here")
    assert main(["doctor", "--gpu", "--json", "driver", "shared_memory", "head"]) == 1
    found = {line["name"]: line for line in json.loads(capsys.readouterr().out)}
    assert {name: line["verdict"] for name, line in found.items()} == {
        "driver": "fails",
        "shared_memory": "works",
        "head": "skipped",
    }
    assert found["driver"]["fix"]
    assert main(["doctor", "--gpu", "--device", "cpu", "driver"]) == 0


def test_every_gpu_check_is_there():
    from llmtrain.doctor import gpu_checks as checks

    for check in gpu_checks("cuda"):
        assert callable(getattr(checks, check.name))


def test_too_little_shared_memory_names_the_way_out(monkeypatch):
    from llmtrain.doctor import gpu_checks as checks

    monkeypatch.setattr(checks.shutil, "disk_usage", lambda path: (64 << 20, 0, 60 << 20))
    with pytest.raises(checks.Fault, match=r"/dev/shm has 0\.06 GiB free of 0\.06") as fault:
        checks.shared_memory("cuda")
    assert "--shm-size" in fault.value.fix
