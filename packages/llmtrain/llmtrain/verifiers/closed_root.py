"""Replace the file system of this process by one that holds the Python interpreter, read-only, and one folder.

Imported by sandbox.py, which runs as a file of its own; uses the standard library only. Needs a mount namespace of its
own. The new root is a tmpfs, mounted in an empty folder; below it the interpreter's folders are bound read-only, the
devices that programs expect are bound, and the files of the working folder are copied into another tmpfs, of limited
size, the only place that can be written to.
"""

import ctypes
import os
import platform
import shutil
from pathlib import Path

BIND, MOVE_BELOW, PRIVATE, REMOUNT, READ_ONLY = 0x1000, 0x4000, 1 << 18, 0x20, 0x1
KEPT = 0x2 | 0x4 | 0x8 | 0x400 | 0x800
"""Options of a mount that a remount must repeat: nosuid, nodev, noexec, noatime, nodiratime; statvfs has the same."""
RELATIME, STATVFS_RELATIME = 1 << 21, 0x1000
DETACH = 2
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
"""Number of the system call, by machine."""
LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/etc/localtime")
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
WORK = "/llmtrain-check"
MAX_FILES = 4096


class Mounts:
    """Mounts of a new root in the folder `root`. Each method raises OSError if the kernel refuses."""

    def __init__(self, libc: ctypes.CDLL, root: str) -> None:
        self.libc, self.root = libc, root

    def mount(self, source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
        words = [None if word is None else os.fsencode(word) for word in (source, target, kind, options)]
        self._check(self.libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]))

    def _check(self, result: int) -> None:
        if result != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def bind(self, path: str, *, place: str | None = None, read_only: bool = True) -> None:
        """Show a file or folder of the machine in the new root, at the same path or at `place`; repeat symlinks."""
        target = Path(self.root + (place or path))
        target.parent.mkdir(parents=True, exist_ok=True)
        if os.path.islink(path):
            target.symlink_to(os.readlink(path))
            return
        if os.path.isdir(path):
            target.mkdir(exist_ok=True)
        else:
            target.touch()
        self.mount(path, str(target), None, BIND | MOVE_BELOW)
        if read_only:
            found = os.statvfs(target).f_flag
            kept = found & KEPT | (RELATIME if found & STATVFS_RELATIME else 0)
            self.mount(None, str(target), None, BIND | REMOUNT | READ_ONLY | kept)

    def enter(self) -> None:
        """Make the new root the root, and let go of the old one."""
        os.chdir(self.root)
        self._check(self.libc.syscall(PIVOT_ROOT[platform.machine()], b".", b"."))
        self._check(self.libc.umount2(b".", DETACH))
        os.chdir(WORK)


def close_root(libc: ctypes.CDLL, root: str, python: list[str], files_mib: int) -> None:
    """Leave the machine's files for a new root, mounted in the empty folder `root`, with the working folder as WORK.

    python: folders of the interpreter. files_mib: size of the working folder.

    Raises OSError if the kernel refuses a step, and KeyError on a machine without known PIVOT_ROOT; the working folder
    and the files are then as before.
    """
    work, mounts = os.getcwd(), Mounts(libc, root)
    PIVOT_ROOT[platform.machine()]
    mounts.mount(None, "/", None, PRIVATE | MOVE_BELOW)
    mounts.mount("tmpfs", root, "tmpfs", 0x2 | 0x4, "size=1m,mode=755")
    shown: list[str] = []
    for path in (*python, *LIBRARIES):
        if os.path.lexists(path) and not any(path.startswith(f"{above}/") for above in shown):
            mounts.bind(os.path.realpath(path) if path in python else path, place=path)  # a link to an environment
            shown.append(path)
    for device in DEVICES:
        mounts.bind(device, read_only=False)
    os.mkdir(root + WORK)
    mounts.mount("tmpfs", root + WORK, "tmpfs", 0x2 | 0x4, f"size={files_mib}m,nr_inodes={MAX_FILES},mode=755")
    for file in os.scandir(work):
        shutil.copyfile(file.path, f"{root}{WORK}/{file.name}")
    if not os.path.lexists(f"{root}/tmp"):  # an interpreter may be below it
        os.symlink(WORK, f"{root}/tmp")
    mounts.mount(None, root, None, REMOUNT | READ_ONLY | 0x2 | 0x4)
    mounts.enter()
