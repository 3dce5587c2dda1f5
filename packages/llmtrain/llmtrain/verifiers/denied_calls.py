"""Refuse system calls by which a program would get around its limits.

Imported by sandbox.py, which runs as a file of its own; uses the standard library only. Refused with EPERM: new
namespaces and mounts, in which memory can be hidden as files; memory without a process (memfd, shared memory of System
V); reading and tracing other processes; parts of the kernel that Python programs do not need.
"""

import ctypes
import platform

EPERM, ENOSYS = 1, 38
NEW_SPACES = 0x7E020080
"""Flags of clone that ask for a new namespace."""
CALLS: dict[str, tuple[int, int, int, tuple[int, ...]]] = {
    # architecture of the audit; clone; clone3; unshare, setns, mount, ptrace, process_vm_readv, process_vm_writev,
    # memfd_create, memfd_secret, shmget, userfaultfd, bpf, perf_event_open, add_key, keyctl, io_uring_setup,
    # open_tree, move_mount, fsopen, pidfd_getfd
    "x86_64": (
        *(0xC000003E, 56, 435),
        (272, 308, 165, 101, 310, 311, 319, 447, 29, 323, 321, 298, 248, 250, 425, 428, 429, 430, 438),
    ),
    "aarch64": (
        *(0xC00000B7, 220, 435),
        (97, 268, 40, 117, 270, 271, 279, 447, 194, 282, 280, 241, 217, 219, 425, 428, 429, 430, 438),
    ),
}
LOAD, AND, EQUAL, ANY_BIT, RETURN = 0x20, 0x54, 0x15, 0x45, 0x06
"""Instructions of the filter: load a word, jump if equal or if a bit is set, return."""
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
"""Offsets of what a filter reads."""
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER = 22, 38, 2


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("value", ctypes.c_uint))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("first", ctypes.POINTER(_Instruction)))


def deny_calls(libc: ctypes.CDLL) -> bool:
    """Refuse the calls in this process and its children; return False if the kernel cannot."""
    if platform.machine() not in CALLS:
        return False
    audit, clone, clone3, refused = CALLS[platform.machine()]
    steps = [
        *((LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, audit), (RETURN, 0, 0, REFUSE | EPERM), (LOAD, 0, 0, NUMBER)),
        *((EQUAL, 0, 1, clone3), (RETURN, 0, 0, REFUSE | ENOSYS)),  # its flags cannot be read; libraries then use clone
        *(step for call in refused for step in ((EQUAL, 0, 1, call), (RETURN, 0, 0, REFUSE | EPERM))),
        *((EQUAL, 0, 3, clone), (LOAD, 0, 0, FIRST_ARGUMENT), (ANY_BIT, 0, 1, NEW_SPACES)),
        *((RETURN, 0, 0, REFUSE | EPERM), (RETURN, 0, 0, ALLOW)),
    ]
    made = (_Instruction * len(steps))(*(_Instruction(*step) for step in steps))
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return bool(libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.byref(_Program(len(steps), made)), 0, 0) == 0)
