"""Run a Python program under limits: `python -I sandbox.py '{"program": ..., "cpu_seconds": ..., ...}'`.

Started as a file of its own, in a folder made for it; uses the standard library only. It leaves the network, the other
processes and the files of the machine behind (namespaces, if the kernel allows), gives up root, sets the limits, then
executes the program.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # -I leaves it out
from closed_root import close_root

NEW_USER, NEW_NET, NEW_PID, NEW_IPC, NEW_FILES = 0x10000000, 0x40000000, 0x20000000, 0x08000000, 0x00020000
PR_SET_PDEATHSIG, PR_SET_KEEPCAPS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 1, 8, 47, 2
CAP_DAC_READ_SEARCH = 2
CAPABILITY_VERSION_3 = 0x20080522
FIRST_UID = 1_000_000_000


def isolate(libc: ctypes.CDLL, root: str, python: list[str]) -> None:
    """Leave network, processes, shared memory and files of the machine, and give up root.

    root: empty folder in which a new root is mounted. python: folders of the interpreter.
    """
    spaces, user, group = NEW_NET | NEW_PID | NEW_IPC | NEW_FILES, os.getuid(), os.getgid()
    apart = libc.unshare(spaces) == 0
    if not apart and libc.unshare(NEW_USER | spaces) == 0:
        apart = True
        with contextlib.suppress(OSError):
            _keep_user(user, group)
    if apart:
        with contextlib.suppress(OSError, KeyError):  # python_tests.py finds out and says so
            close_root(libc, root, python)
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):  # a container may have no other user to become
            _leave_root(libc, FIRST_UID + os.getpid())


def _keep_user(user: int, group: int) -> None:
    """Keep the ids of user and group in a new user namespace."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _leave_root(libc: ctypes.CDLL, uid: int) -> None:
    """Become a separate user: the limit on processes does not hold for root, and counts all processes of a user.

    Keep only root's right to read any file, because the interpreter may be in a folder of root's.
    """
    os.chown(".", uid, uid)
    libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    mask = 1 << CAP_DAC_READ_SEARCH
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    libc.capset(header, (ctypes.c_uint32 * 6)(mask, mask, mask, 0, 0, 0))
    libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0)


def limit(settings: dict[str, Any]) -> None:
    """Set the limits of this process and of its children."""
    for kind, most in (
        (resource.RLIMIT_CPU, settings["cpu_seconds"]),
        (resource.RLIMIT_AS, settings["memory_mib"] * 2**20),
        (resource.RLIMIT_FSIZE, settings["file_mib"] * 2**20),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, settings["processes"]),
    ):
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def main(settings: dict[str, Any]) -> int:
    """Return the exit code of the program, 128 + n if signal n ended it."""
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    if libc:
        isolate(libc, settings["root"], settings["python"])
    pid = os.fork()
    if pid == 0:  # the first process of the new namespace: when it ends, all others there end
        if libc:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os._exit(run(settings))
    return exit_code(pid)


def run(settings: dict[str, Any]) -> int:
    """Run the program in a separate process: signals do nothing to the first process of a namespace."""
    pid = os.fork()
    if pid == 0:
        limit(settings)
        seed = {"PYTHONHASHSEED": "0"}  # sets have the same order in each run; -I would not read it: -s -P is the rest
        os.execve(sys.executable, [sys.executable, "-s", "-P", "-B", str(settings["program"])], os.environ | seed)
    return exit_code(pid)


def exit_code(pid: int) -> int:
    """Return the exit code of a child, 128 + n for signal n."""
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
