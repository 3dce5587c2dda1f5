"""Rows of a log, and the file that they are read from: only its first bytes, a line at a time."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, BinaryIO, NamedTuple

from ..runlog import EVALUATES

HEAD = 2**20
"""Bytes at the start of a file that tell its kind."""
LONGEST = 16 * 2**20
"""Upper limit for a line, bytes."""
TRAINED = (
    "train/global_step",
    "training/global_step",
    "eval/global_step",
    "trainer/global_step",
    "system/step",
    "grpo_step",
    "global_step",
    "global_step/max_steps",
)
"""Names of a row's step that count training steps; a row has one or more."""
STEP, LOGGED = "step", "_step"
"""Plain name, and W&B's own, which counts calls of its logger."""
COUNTED = (
    *("training_step", "train_step", "trainer_step", "train/step", "training/step", "train/iteration", "iteration"),
    *("training_iteration", "train_iteration", "iter", "itr", "it", "update", "update_step"),
    *("optimizer_step", "optim_step"),
)
"""Names that count training steps where there is none of those before; the first of them counts."""
OF_ALL = re.compile(r"(\d{1,15})/\d{1,15}")
"""Step as ms-swift writes it, before the number of all steps."""


NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?|nan|inf(?:inity)?)", re.IGNORECASE)
LONGEST_NUMBER = 40
BLANKS = {"", "-", "–", "—", "n/a", "na", "<na>", "none", "null", "no log"}
"""Texts, in small letters, that stand where a row has no value."""
KINDS = ("type", "split", "phase", "mode", "stage")
"""Names of what tells the kind of a row."""
EVALUATIONS = ("eval", "evaluation", "val", "validation", "test")
"""Values of it that make a row's metrics those of an evaluation."""
OF_DATA = {"question", "problem", "prompt", "answer", "solution", "ground_truth", "messages", "reward_model"}
"""Names of the columns of a data set of problems, of which a log has none or one."""


RUNS = ("run", "run_name", "run_id", "arm", "experiment", "trial", "variant", "method", "algorithm", "seed")
"""Names of columns that tell the runs of a table apart."""
RANKS = ("rank", "global_rank", "local_rank", "dp_rank", "node_rank", "worker", "worker_id", "process_index", "shard")
"""Names of columns that tell which of the processes of one run wrote a row."""
NODES = ("node", "node_id", "host", "hostname", "machine", "replica")
"""The same, of machines: a run that is resumed may have another."""
TAGS = ("metric", "metric_name", "tag", "key", "variable", "measure", "name")
"""Names of the column of a table in long form that names a row's metric."""
VALUES = ("value", "metric_value", "scalar_value")
"""Names of the column of such a table that has the metric's value."""
BESIDE = ("timestamp", "wall_time", "walltime", "time", "relative_time", "runtime", "epoch", "is_nan", "index", "")
"""Names of other columns of numbers that such a table may have."""


class Row(NamedTuple):
    """Metrics of one step of a run, as a file has them."""

    run: str
    """Name of the run within the file; empty in a file of one run."""
    step: Any
    """Step; None if the line is unreadable."""
    metrics: Mapping[str, Any]
    writer: str = ""
    """Process of the run that wrote it, such as "rank 3"; empty if the file does not say."""


@lru_cache(maxsize=4096)
def spelled(name: str) -> str:
    """Return a column's name in small letters, with _ for spaces."""
    return name.strip().lower().replace(" ", "_")


def step_names(names: Collection[str]) -> list[str]:
    """Return the names that hold the step, of which a row has one or more; empty if there is none."""
    there: dict[str, list[str]] = {}
    for name in names:
        there.setdefault(spelled(name), []).append(name)
    if trained := [name for group in TRAINED for name in there.get(group, [])]:
        return trained
    if plain := sorted(there.get(STEP, [])):
        return [*plain, *there.get(LOGGED, [])]
    counted = (there[name] for name in COUNTED if name in there)
    return next(counted, there.get(LOGGED, []))[:1]


def counts_training(steps: Sequence[str]) -> bool:
    """Return True if the names of a row's step, as of `step_names`, count training steps by what they say."""
    return bool(steps) and spelled(steps[0]) not in (STEP, LOGGED)


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
    named = flat({name: value for name, value in long_form(record, steps).items() if name not in steps})
    if held_out:
        named = ((name if EVALUATES.match(name) else f"eval/{name}", value) for name, value in named)
    return Row(of_run(record), step, dict(named), of_writer(record))


def long_form(record: Mapping[str, Any], steps: Collection[str]) -> Mapping[str, Any]:
    """Return a row of a table in long form, {"metric": "entropy", "value": 0.5}, as {"entropy": 0.5}; others as is."""
    there = {spelled(name): name for name in record}
    tag = next((there[name] for name in TAGS if name in there and isinstance(record[there[name]], str)), None)
    column = next((there[name] for name in VALUES if name in there), None)
    if tag is None or column is None or isinstance(record[column], list | dict):
        return record
    known = {*(there[name] for name in (*BESIDE, *RUNS, *RANKS, *NODES, *KINDS) if name in there), column, *steps}
    others = {name: value for name, value in record.items() if name not in known and name != tag}
    if any(is_a_number(value) for name, value in others.items() if not name.startswith("_")):
        return record
    lost = "is_nan" in there and str(record[there["is_nan"]]).lower() in ("true", "1", "1.0")
    return {**others, record[tag]: float("nan") if lost else record[column]}


def is_a_number(value: Any) -> bool:
    """Return True for a number, or a text of one."""
    text = isinstance(value, str) and NUMBER.fullmatch(value.strip()) is not None
    return text or (isinstance(value, int | float) and not isinstance(value, bool))


def of_writer(record: Mapping[str, Any]) -> str:
    """Return which process of a run wrote a record, from its columns in RANKS and NODES; empty if it has none."""
    found = ((spelled(name), value) for name, value in record.items())
    told = [(name, value) for name, value in found if name in (*RANKS, *NODES) and isinstance(value, str | int | float)]
    whole = [f"{name} {value}" for name, value in told if isinstance(value, str | int)]
    whole += [f"{name} {value:.0f}" for name, value in told if isinstance(value, float) and value.is_integer()]
    return ", ".join(sorted(whole, key=lambda one: one.partition(" ")[0] in NODES))


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
