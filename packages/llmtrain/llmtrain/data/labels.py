"""Names of data sets that are read together: parent folders are added to make equal names unique.

labels(["g/test.jsonl", "h/test.jsonl"], "test")      # ["g", "h"]
labels(["g/sums.jsonl", "digits.jsonl"], "test")      # ["", ""]
"""

import os
from collections.abc import Sequence
from pathlib import Path

from .tables import SHARD, SPLITS, held, source_of


def labels(names: Sequence[str], split: str) -> list[str]:
    """Return the label of each file, folder or data set of the hub for `tables`; "" if its own name is unique.

    Raises:
        ValueError: for a file that is given twice, alone or in a folder.
    """
    if len(names) < 2:
        return [""] * len(names)
    files = [held(name, split) for name in names]
    first: dict[str, str] = {}
    for name, some in zip(names, files, strict=True):
        for place in some:
            if place in first:
                raise ValueError(f"{place} is given twice, by {first[place]} and by {name}: leave one out")
            first[place] = name

    def sources(i: int, label: str = "") -> set[str]:
        return {source_of(names[i], stem, label) for stem in files[i].values()}

    found = []
    for i, name in enumerate(names):
        others = [j for j in range(len(names)) if j != i]
        if not any(sources(i) & sources(j) for j in others):
            found.append("")
            continue
        taken = {source for j in others for label in ("", *_tails(names[j])) for source in sources(j, label)}
        found.append(next((label for label in _tails(name) if not taken & sources(i, label)), name))
    return found


def _tails(name: str) -> list[str]:
    """Return the possible labels of a file or folder, from its name alone to its full path."""
    path = Path(name)
    if not path.exists():
        return [name]
    whole = Path(os.path.abspath(path))  # unlike resolve(), this keeps names of links
    stem = SHARD.sub("", whole.stem) if path.is_file() else whole.name
    parts = [*whole.parent.parts[1:], *([] if path.is_file() and stem in SPLITS else [stem])]
    return ["/".join(parts[-n:]) for n in range(1, len(parts) + 1)]
