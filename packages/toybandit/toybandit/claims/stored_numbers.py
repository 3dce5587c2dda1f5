"""Numbers of the claims as docs/theory has them, and those that have moved since.

A verdict is a direction, and may survive an error that changes every number. Runs have fixed seeds, so that unchanged
code gives the stored numbers again, except for rounding.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from math import hypot, isfinite, isnan
from pathlib import Path

from .registry import Record

FOLDER = Path(__file__).parents[4] / "docs" / "theory"
"""Folder of the stored numbers in the repository; an installed package has none, and nothing is compared."""
FULL, QUICK = "claims.json", "quick.json"
"""Files of the full measurement, with all that is told of a claim, and of the quick one, with numbers alone."""
ERROR = ", standard error"
"""End of the name of a number's standard error."""
ROUNDING = 1e-6, 0.01
"""Absolute and relative difference that is allowed to a number of any kind: other machines round differently."""

Numbers = Mapping[str, Mapping[str, float]]
"""Numbers of each claim by their names."""


def read(quick: bool, folder: Path | None = None) -> Numbers:
    """Return the stored numbers of a quick or a full measurement; empty if the folder has none."""
    path = (FOLDER if folder is None else folder) / (QUICK if quick else FULL)
    if not path.exists():
        return {}
    content = json.loads(path.read_text())
    return content if quick else {one["name"]: one["numbers"] for one in content}


def write_quick(records: Sequence[Record], folder: Path) -> None:
    """Write the numbers of a quick measurement into `folder`, a claim to a line; those of other claims stay."""
    found = {**read(True, folder), **{record.name: record.numbers for record in records}}
    lines = [f"{json.dumps(name)}: {json.dumps(found[name], ensure_ascii=False)}" for name in sorted(found)]
    (folder / QUICK).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def allowed(name: str, before: Mapping[str, float], now: Mapping[str, float]) -> float:
    """Return the largest difference that counts as none: the error of the difference of both, at least rounding."""
    absolute, relative = ROUNDING
    error = hypot(before.get(name + ERROR, 0.0), now.get(name + ERROR, 0.0))
    return max(error if isfinite(error) else 0.0, absolute + relative * abs(before[name]))


def same(name: str, before: Mapping[str, float], now: Mapping[str, float]) -> bool:
    """Return True if the number `name` has not moved; NaN and ±inf must be what they were."""
    old, new = before[name], now[name]
    return old == new or (isnan(old) and isnan(new)) or abs(new - old) <= allowed(name, before, now)


def moved(record: Record, stored: Numbers) -> Iterator[str]:
    """Yield a line for each number of a claim that differs from the stored one; none if nothing is stored of it."""
    before, now = stored.get(record.name), record.numbers
    if before is None:
        return
    for name in dict.fromkeys([*before, *now]):
        if name.endswith(ERROR):
            continue
        place = f"{record.name}: the number {name!r}"
        if name not in before:
            yield f"{place} is not stored; now {now[name]:.6g}"
        elif name not in now:
            yield f"{place} is no longer measured; stored {before[name]:.6g}"
        elif not same(name, before, now):
            yield f"{place} has moved from the stored {before[name]:.6g} to {now[name]:.6g}"


def summary(records: Sequence[Record], stored: Numbers, moved: Sequence[str]) -> str:
    """Return in a few words how many numbers have moved; "" if none has, or nothing is stored."""
    compared = sum(record.name in stored for record in records)
    count = f"numbers of {compared} claim{'s' * (compared != 1)} compared with docs/theory"
    return f"{count}: {len(moved)} moved" if moved else ""


def is_stored_in(folder: Path | None) -> bool:
    """Return True if a page written into `folder` replaces the stored numbers."""
    return folder is not None and (folder / "theory").resolve() == FOLDER.resolve()
