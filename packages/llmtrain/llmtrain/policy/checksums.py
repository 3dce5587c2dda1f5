"""Checksums of the files of a folder, in its checksums.json: {"model.safetensors": SHA-256, ...}."""

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FILE = "checksums.json"
THREADS = 4
"""Files that are read at a time."""


def write_checksums(folder: Path) -> None:
    """Write the checksums of all files in a folder and below."""
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    with ThreadPoolExecutor(THREADS) as pool:
        found = dict(zip(names, pool.map(lambda name: sha256(folder / name), names), strict=True))
    (folder / FILE).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def altered(folder: Path) -> str:
    """Return the first file that is missing or differs from its checksum; empty if there is none."""
    try:
        expected: dict[str, str] = json.loads((folder / FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return FILE
    if not isinstance(expected, dict):
        return FILE
    with ThreadPoolExecutor(THREADS) as pool:
        found = pool.map(lambda name: sha256(folder / name), expected)
        return next((name for name, now in zip(expected, found, strict=True) if now != expected[name]), "")


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):  # also a name that no file can have
        return ""
