"""Run a program and its tests under limits: `python -I sandbox.py '{"processes": [...], "cpu_seconds": ..., ...}'`.

Started as a file of its own; uses the standard library only. Each of the two processes leaves the network, the other
processes and the files of the machine behind (namespaces, if the kernel allows), gives up root, sets the limits, then
executes the program.pyc in its folder, with a socket to the other one. This process watches what all of them use
together (process_limits.py).
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import sys
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # -I leaves it out
from closed_root import close_root
from denied_calls import deny_calls
from process_limits import POLL, Sums, end_all

NEW_USER, NEW_NET, NEW_PID, NEW_IPC, NEW_FILES = 0x10000000, 0x40000000, 0x20000000, 0x08000000, 0x00020000
PR_SET_PDEATHSIG, PR_SET_KEEPCAPS, PR_SET_CHILD_SUBREAPER, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 1, 8, 36, 47, 2
CAP_DAC_READ_SEARCH = 2
CAPABILITY_VERSION_3 = 0x20080522
FIRST_UID = 1_000_000_000


def isolate(libc: ctypes.CDLL, root: str, python: list[str], files_mib: int) -> None:
    """Leave network, processes, shared memory and files of the machine, and give up root.

    root: empty folder in which a new root is mounted. python: folders of the interpreter. files_mib: size of the
    working folder.
    """
    spaces, user, group = NEW_NET | NEW_PID | NEW_IPC | NEW_FILES, os.getuid(), os.getgid()
    apart = libc.unshare(spaces) == 0
    if not apart and libc.unshare(NEW_USER | spaces) == 0:
        apart = True
        with contextlib.suppress(OSError):
            _keep_user(user, group)
    if apart:
        with contextlib.suppress(OSError, KeyError):  # python_tests.py finds out and says so
            close_root(libc, root, python, files_mib)
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
        (resource.RLIMIT_NPROC, settings["most_processes"]),
    ):
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def main(settings: dict[str, Any]) -> int:
    """Return the exit code of the process that ends first, 128 + n if signal n ended it; 1 at a limit for all."""
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    die_with_parent(libc)
    ends = socket.socketpair()
    started = []
    for end, process in zip(ends, settings["processes"], strict=True):
        started.append(os.fork())
        if started[-1] == 0:
            os._exit(start(libc, settings, process, end.fileno()))
    for end in ends:
        end.close()
    if not libc:
        return exit_code(os.wait()[1])
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # processes without a parent are below this one too
    return watch(started, Sums(settings["memory_mib"], settings["cpu_seconds"]))


def die_with_parent(libc: ctypes.CDLL | None) -> None:
    """End this process when its parent ends, such as a verifier that is killed."""
    if libc:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def watch(started: list[int], sums: Sums) -> int:
    """Return the exit code of the process that ends first; 1, with the reason on stderr, at a limit for all."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid in started:
            end_all()
            return exit_code(status)
        if reason := sums.exceeded():
            end_all()
            print(reason, file=sys.stderr, flush=True)
            return 1
        if not pid:
            signal.sigtimedwait({signal.SIGCHLD}, POLL)


def start(libc: ctypes.CDLL | None, settings: dict[str, Any], process: dict[str, str], channel: int) -> int:
    """Return the exit code of a process in a folder of its own. channel: its end of the socket."""
    os.chdir(process["folder"])
    if libc:
        isolate(libc, process["root"], settings["python"], settings["files_mib"])
    die_with_parent(libc)
    pid = os.fork()
    if pid == 0:  # the first process of the new namespace: when it ends, all others there end
        die_with_parent(libc)
        os._exit(run(libc, settings, process["role"], channel))
    return exit_code(os.waitpid(pid, 0)[1])


def run(libc: ctypes.CDLL | None, settings: dict[str, Any], role: str, channel: int) -> int:
    """Run the program in a separate process: signals do nothing to the first process of a namespace."""
    pid = os.fork()
    if pid == 0:
        limit(settings)
        die_with_parent(libc)
        if libc:
            deny_calls(libc)
        os.set_inheritable(channel, True)
        seed = {"PYTHONHASHSEED": "0"}  # sets have the same order in each run; -I would not read it: -s -P is the rest
        command = [sys.executable, "-s", "-P", "-B", "program.pyc", role, "text.py", str(channel)]
        os.execve(sys.executable, command, os.environ | seed)
    return exit_code(os.waitpid(pid, 0)[1])


def exit_code(status: int) -> int:
    """Return the exit code of a process that has ended, 128 + n for signal n."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
