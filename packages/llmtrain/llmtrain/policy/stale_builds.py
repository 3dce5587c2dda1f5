"""Removal of stale build locks, for which torch would silently wait forever.

torch builds C++ extensions, such as DeepSpeed's, once for all processes, under a lock file. The building process holds
it open; if that process is killed, the file stays.
"""

import os
from pathlib import Path


def release(root: Path | None = None) -> list[Path]:
    """Remove the locks under `root` that no process holds open; return them. Call in one process per machine at a time.

    root: None for torch's folder of built extensions. No-op on systems without /proc.
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
    """Return the files that processes hold open, as far as this user may see them."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            found.add(os.readlink(entry))
        except OSError:  # the process has ended, or belongs to another user
            continue
    return found
