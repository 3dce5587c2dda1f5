"""Tables of a file, a folder of files, or a data set of the HF hub.

for table in tables("runs/data", split="train"):
    for number, row in table.rows(["prompt", "reward_model.ground_truth"]):
        ...
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from entrostat.settings.installation import missing

from ..process.text import one_line
from .files import KINDS, file_table
from .table import AT_A_TIME, Table, arrow_rows, field_names

SPLITS = ("train", "test", "validation", "valid", "val", "dev")
ABOUT = ("dataset_info.json", "dataset_infos.json")
"""Files that the `datasets` library stores next to the data."""
_HUB = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*(:[\w.-]+)?")
SHARD = re.compile(r"[-_.]?\d+-of-\d+$")


def tables(name: str, split: str = "train", label: str = "") -> Iterator[Table]:
    """Yield the tables of a file, a folder, or a data set of the hub ("openai/gsm8k:main": name and configuration).

    split: split to read of a folder or hub data set. A folder of plain files skips files whose path names another split
    (`test-00000-of-00001.parquet`, `test/a.jsonl`), and keeps files whose path names none. If all of its files
    are of one split, they are its test split, too.
    label: name of the data set instead of its own, see `labels`.

    Raises:
        ValueError: in one line, for a name that is missing, empty, broken, or of an unknown file type.
    """
    check_name(name)
    path = Path(name)
    if path.is_file():
        yield file_table(path, str(path) if label else path.name, source_of(name, label=label))
    elif _is_saved(path):
        yield _saved(path, split, source_of(name, label=label))
    elif path.is_dir():
        for file in _chosen(path, split):
            yield file_table(file, str(file.relative_to(path.parent)), source_of(name, _stem(file), label))
    else:
        yield _hub(name, split, source_of(name, label=label))


def source_of(name: str, stem: str = "", label: str = "") -> str:
    """Return the name of a data set. stem: stem of a file in the folder `name`, or "" to use the folder's name."""
    path = Path(name)
    if stem:
        return f"{label}/{stem}" if label else stem
    return label or (path.stem if path.is_file() else path.name if path.exists() else name.partition(":")[0])


def held(name: str, split: str) -> dict[str, str]:
    """Return the files that `tables` reads, each with its `stem` for `source_of`. Raises ValueError like `tables`."""
    check_name(name)
    path = Path(name)
    if path.is_dir() and not _is_saved(path):
        return {str(file.resolve()): _stem(file) for file in _chosen(path, split)}
    return {str(path.resolve()) if path.exists() else name: ""}


def check_name(name: str) -> None:
    """Raise ValueError unless `name` is a file, a folder, or has the form of a name on the hub."""
    if not Path(name).exists() and (Path(name).suffix in KINDS or not _HUB.fullmatch(name)):
        raise ValueError(f"{name} does not exist; data sets of the HF hub are named owner/name")


def _chosen(path: Path, split: str) -> list[Path]:
    """Return the files of a folder that belong to a split; those of its only split if the test split is asked for.

    Benchmarks on the hub, such as MathArena's, often call their only split `train`.
    """
    files = sorted(p for p in path.rglob("[!.]*") if p.suffix in KINDS and p.name not in ABOUT and p.is_file())
    files = [file for file in files if file.suffix != ".csv"] or files  # csv beside other files is often about them
    if not files:
        raise ValueError(f"{path} has no file of a known type ({', '.join(KINDS)})")
    named = {file: _split(file.relative_to(path)) for file in files}
    asked = _split(Path(split)) or split
    chosen = [file for file in files if named[file] in ("", asked)]
    if asked == "test" and len(set(named.values())) == 1:
        chosen = files
    if not chosen:
        raise ValueError(f"{path} has no split {split!r}; it has {', '.join(sorted(set(named.values())))}")
    return chosen


def _stem(file: Path) -> str:
    """Return the stem of a file in a folder, without a shard number; "" if it is the name of a split."""
    stem = SHARD.sub("", file.stem)
    return "" if stem in SPLITS else stem


def _split(path: Path) -> str:
    """Return the split that a path names (the last word of SPLITS in it), or "" for none."""
    words = re.split(r"[-_./ ]", str(path))
    found = [word for word in words if word in SPLITS]
    return {"valid": "validation", "val": "validation", "dev": "validation"}.get(found[-1], found[-1]) if found else ""


def _datasets() -> Any:
    try:
        import datasets
    except ImportError:
        raise ValueError(f"this data needs the package datasets; {missing('datasets')}") from None
    return datasets


def _is_saved(path: Path) -> bool:
    return (path / "dataset_dict.json").is_file() or (path / "state.json").is_file()


def _saved(path: Path, split: str, source: str) -> Table:
    """Return the table of a split written by `datasets.save_to_disk`."""
    library = _datasets()
    try:
        found = library.load_from_disk(str(path))
    except Exception as error:
        raise ValueError(f"{path} is not a valid saved data set: {one_line(error)}") from None
    if isinstance(found, dict):
        if split not in found:
            raise ValueError(f"{path} has no split {split!r}; it has {', '.join(found)}")
        found = found[split]
    return _dataset(found, str(path), source)


def _hub(name: str, split: str, source: str) -> Table:
    library = _datasets()
    repository, _, config = name.partition(":")
    try:
        found = library.load_dataset(repository, config or None, split=split)
    except Exception as error:  # the hub, its cache and the network raise different errors
        raise ValueError(
            f"{name} is not a file or folder, and split {split!r} cannot be loaded from the HF hub or its cache: "
            f"{type(error).__name__}: {one_line(error)}"
        ) from None
    return _dataset(found, name, source)


def _dataset(found: Any, name: str, source: str) -> Table:
    """Return the table of a data set of the `datasets` library."""
    if not len(found):
        raise ValueError(f"{name} has no rows")

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        top = list(dict.fromkeys(c if c in found.column_names else c.partition(".")[0] for c in columns))
        for part in found.select_columns(top).with_format("arrow").iter(AT_A_TIME):
            yield from part.to_batches()

    return Table(name, source, "row", field_names(found.features.arrow_schema), partial(arrow_rows, name, batches))
