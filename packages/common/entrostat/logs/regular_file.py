"""Refuse what would be read for ever: named pipes and devices where a file is expected."""

from pathlib import Path

OF_A_SHELL = Path("/dev/fd")
"""Folder of the pipes of <(…), which end."""


def require_file(path: Path) -> None:
    """Raise ValueError for a named pipe or a device; no-op for a file, a folder, or nothing at all."""
    if path.exists() and not path.is_file() and not path.is_dir() and OF_A_SHELL not in path.absolute().parents:
        raise ValueError(f"{path} is no file but a pipe or a device, whose end may never come: copy it to a file first")
