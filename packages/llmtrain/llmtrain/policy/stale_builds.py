"""Locks of compilations that were killed. torch would wait for them forever, and say nothing.

torch builds C++ extensions, such as DeepSpeed's, once for all processes, under a lock that is a file. Who builds holds
it open; when that process is killed, the file stays.
"""

import os
from pathlib import Path


def release(root: Path | None = None) -> list[Path]:
    """Remove the locks under `root` that no process holds open; returns them. For one process of a machine at a time.

    root: where torch builds extensions, when None. Does nothing where there is no /proc.
    """
    if root is None:
        from torch.utils.cpp_extension import get_default_build_root

        root = Path(os.environ.get("TORCH_EXTENSIONS_DIR") or get_default_build_root())
    locks = list(root.glob("**/lock"))
    if not locks or not Path("/proc/self/fd").is_dir():
        return []
    held = _open_files()
    stale = [lock for lock in locks if str(lock.resolve()) not in held]
    for lock in stale:
        lock.unlink(missing_ok=True)
    return stale


def _open_files() -> set[str]:
    """What the processes that we may look into hold open."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            found.add(os.readlink(entry))
        except OSError:  # it is gone, or another user's
            continue
    return found
