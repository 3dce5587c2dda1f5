"""Rows of a log, and the file that they are read from: only its first bytes, a line at a time."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

from ..runlog import EVALUATES

LONGEST = 16 * 2**20
"""Upper limit for a line, bytes."""
STEPS = (
    (
        "train/global_step",
        "training/global_step",
        "eval/global_step",
        "trainer/global_step",
        "system/step",
        "grpo_step",
        "global_step",
        "global_step/max_steps",
    ),
    ("Step", "step", "_step"),
)
"""Names of a row's step. Those of the first group count training steps; W&B's own _step counts calls of its logger."""
OF_ALL = re.compile(r"(\d{1,15})/\d{1,15}")
"""Step as ms-swift writes it, before the number of all steps."""


NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?|nan|inf(?:inity)?)", re.IGNORECASE)
LONGEST_NUMBER = 40
BLANKS = {"", "-", "n/a", "na", "<na>", "none", "null", "no log"}
"""Texts, in small letters, that stand where a row has no value."""
KINDS = ("type", "split", "phase", "mode", "stage")
"""Names of what tells the kind of a row."""
EVALUATIONS = ("eval", "evaluation", "val", "validation", "test")
"""Values of it that make a row's metrics those of an evaluation."""
OF_DATA = {"question", "problem", "prompt", "answer", "solution", "ground_truth", "messages", "reward_model"}
"""Names of the columns of a data set of problems, of which a log has none or one."""


RUNS = ("run", "run_name", "run_id", "arm", "experiment", "trial", "variant", "method", "algorithm", "seed")
"""Names of columns that tell the runs of a table apart."""


class Row(NamedTuple):
    """Metrics of one step of a run, as a file has them."""

    run: str
    """Name of the run within the file; empty in a file of one run."""
    step: Any
    """Step; None if the line is unreadable."""
    metrics: Mapping[str, Any]


def step_names(names: Collection[str]) -> list[str]:
    """Return the names that hold the step, of which a row has one or more; empty if there is none."""
    groups = ([name for name in group if name in names] for group in STEPS)
    return next((group for group in groups if group), [])


def data_columns(names: Collection[str]) -> list[str]:
    """Return those of the names that a data set has, if there are two or more and no step; else an empty list."""
    found = [name for name in names if str(name).lower() in OF_DATA]
    return found if len(found) > 1 and not step_names(names) else []


def told_data(columns: Sequence[str]) -> str:
    """Return what a file with these columns of a data set is."""
    return f"a data set, whose rows have {' and '.join(columns)}, and not the log of a run"


def row(record: Mapping[str, Any], steps: Collection[str]) -> Row:
    """Return a record as a row; `steps`: the names that hold its step."""
    known = (record[name] for name in steps if record.get(name) not in (None, ""))
    step = next((found for found in known if found == found), None)  # not NaN, which fills gaps of tables
    if isinstance(step, str) and (found := OF_ALL.fullmatch(step)):
        step = int(found[1])
    elif isinstance(step, str) and step.strip().isdigit():
        step = int(step)
    held_out = any(record.get(name) in EVALUATIONS for name in KINDS)
    named = flat({name: value for name, value in record.items() if name not in steps})
    if held_out:
        named = ((name if EVALUATES.match(name) else f"eval/{name}", value) for name, value in named)
    return Row(of_run(record), step, dict(named))


def of_run(record: Mapping[str, Any]) -> str:
    """Return the name of a record's run, from its columns in RUNS; empty if it has none of them."""
    told = ((name.lower(), value) for name, value in record.items() if isinstance(value, str | int))
    return ", ".join(value if isinstance(value, str) else f"{name} {value}" for name, value in told if name in RUNS)


def flat(record: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of an object and of those in it, with / between their names.

    Texts of numbers become numbers, and those of BLANKS None. JSON has no NaN, so that many write it as a text.
    """
    for name, value in record.items():
        if isinstance(value, dict):
            yield from flat(value, f"{before}{name}/")
        elif isinstance(value, str) and len(value) <= LONGEST_NUMBER and NUMBER.fullmatch(value.strip()):
            yield before + str(name), float(value)
        elif isinstance(value, str) and value.strip().lower() in BLANKS:
            yield before + str(name), None
        else:
            yield before + str(name), value


class LimitedFile:
    """First `most` bytes of a binary file that can seek."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self.file = file
        self.most = most
        self.size = file.seek(0, 2)
        """Size of the whole file, bytes."""
        file.seek(0)

    @property
    def cut(self) -> bool:
        return self.size > self.most

    def read(self, count: int) -> bytes:
        """Return the next bytes, fewer at the end."""
        return self.file.read(max(min(count, self.most - self.file.tell()), 0))

    def whole(self) -> bytes:
        """Return all bytes. Raises ValueError if there are more than `most`."""
        if self.cut:
            raise ValueError(f"is larger than {self.most // 2**20} MiB")
        self.file.seek(0)
        return self.file.read(self.most)

    def lines(self) -> Iterator[str]:
        """Yield the lines; in a file that is cut, the last one may be incomplete.

        Raises ValueError if a line is longer than LONGEST.
        """
        while line := self.file.readline(max(min(LONGEST + 1, self.most - self.file.tell()), 0)):
            if len(line) > LONGEST:
                raise ValueError(f"has a line of more than {LONGEST // 2**20} MiB")
            yield line.decode("utf-8", "replace")
