"""Input that no one would write: each case is read, or refused with an error of one line, within LIMIT seconds.

2,000 cases of each kind, and 10,000 in `make test-long`, the same in every run: Hypothesis draws seeds, and a seed
makes CASES of them. The seconds are processor time of the thread that reads, which nothing else uses.
"""

import json
import math
import random
import signal
import time
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from entrostat.logs.runlog import read_metrics
from entrostat.settings.commandline import parse_settings
from entrostat.settings.field_types import merge
from entrostat.settings.plain_yaml import parse_yaml
from llmtrain.data.read import read
from llmtrain.policy.checkpoint import load_state
from llmtrain.policy.checksums import write_checksums
from llmtrain.policy.plain_state import write_state
from llmtrain.settings.config import TrainConfig
from llmtrain.settings.nested import to_dict
from llmtrain.verifiers.direct import countdown_check
from llmtrain.verifiers.math.answer_text import read_truth, tidy
from llmtrain.verifiers.math.final_answer import final_answer
from llmtrain.verifiers.math.plain_number import same_number
from llmtrain.verifiers.python_tests import plan_of, program

pytestmark = pytest.mark.slow

SEEDS, MORE, CASES = 40, 200, 50
ODD = [
    "",
    "1",
    "1e30",
    "nan",
    "0.4x",
    "linear(1, 2, 3)",
    "a" * 3000,
    "\x00",
    "\ud800",
    "é",
    "٣",
    "None",
    "\n",
    "[" * 99,
]
NUMBERS = [0, 1, -1, 2, 0.5, 1e-300, 1e308, 10**30, -(2**63), math.inf, math.nan]
MARKS = [
    "[",
    "]",
    "{",
    "}",
    ":",
    "- ",
    "\n",
    "  ",
    "&a ",
    "*a",
    "!!python/object ",
    "|",
    "'",
    '"',
    "%",
    "?",
    "1e",
    "~",
    "a=",
    "=",
]
PIECES = [
    "\\boxed{",
    "}",
    "{",
    "\\frac",
    "####",
    "answer is",
    "$",
    "1",
    ",",
    ".",
    "-",
    "/",
    "e9",
    "%",
    "```python\n",
    "```",
]
PIECES += ["\n", "(", "*", "3+5", "=", "\\text{", " ", *ODD]
COLUMNS = ["question", "prompt", "answer", "ground_truth", "reward_model", "solution", "data_source", "choices", "x"]
KEYS = [
    (name, key)
    for name, section in to_dict(TrainConfig()).items()
    for key in (section if isinstance(section, dict) and section else [""])
]


class Draw(random.Random):
    """Random values of the kinds that files hold."""

    def value(self, deep=2):
        kind = self.randrange(7 if deep else 4)
        if kind < 2:
            return self.choice(NUMBERS)
        if kind == 2:
            return self.choice(ODD)
        if kind == 3:
            return self.choice([None, True, False])
        if kind == 4:
            return [self.value(deep - 1) for _ in range(self.randrange(4))]
        return self.table(["a", "dict", "tuple", "tensor", "role", "content", "ground_truth", ""], deep - 1)

    def table(self, keys, deep=2, most=3):
        return {self.choice(keys): self.value(deep) for _ in range(self.randrange(most + 1))}

    def text(self, pieces, most=15):
        return "".join(self.choice(pieces) for _ in range(self.randrange(most + 1)))

    def lines(self, line):
        rows = [
            json.dumps(line()).encode() if self.random() < 0.8 else self.randbytes(9) for _ in range(self.randrange(4))
        ]
        return b"\n".join(rows)


LIMIT = 3.0
"""Most cases take milliseconds, and a hang takes more than any limit."""


@contextmanager
def refused(case, *named: type[Exception]):
    """Allow these errors, of one line, within the limit; the timer also counts other threads, so it only looks."""
    began = time.thread_time()

    def look(number, frame):
        assert time.thread_time() - began < LIMIT, f"takes longer than {LIMIT:g} s"

    before = signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, LIMIT, 1.0)
    said = ""
    try:
        yield
    except named as error:
        said = str(error)
    except Exception:
        note(repr(case))
        raise
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
    assert len(said.splitlines()) <= 1, said
    assert len(said) < 10_000, said


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder with a checkpoint."""
    folder = tmp_path_factory.mktemp("fuzz")
    path = folder / "checkpoints" / "step-000001"
    path.mkdir(parents=True)
    write_state({"step": 1, "moments": (torch.zeros(2), [1.5])}, path)
    write_checksums(path)
    return folder


def configurations(draw, folder):
    changes: dict = {}
    for _ in range(draw.randrange(1, 4)):
        name, key = draw.choice(KEYS)
        if key:
            changes.setdefault(name, {})[key] = draw.value()
        else:
            changes[name] = draw.value()
    with refused(changes, ValueError):
        merge(TrainConfig(), changes)


def files_of_settings(draw, folder):
    text = draw.text([*MARKS, *ODD], 25)
    with refused(text, ValueError):
        parse_yaml(text)


def command_lines(draw, folder):
    items = [draw.text([*MARKS, *ODD], 5) for _ in range(draw.randrange(4))]
    with refused(items, ValueError):
        parse_settings(items)


def rows_of_jsonl(draw, folder):
    path = folder / "rows.jsonl"
    path.write_bytes(draw.lines(lambda: draw.table(COLUMNS)))
    with refused(path.read_bytes(), ValueError):
        read(str(path), skip_bad=draw.random() < 0.5)


def rows_of_parquet(draw, folder):
    path, rows = folder / "rows.parquet", [draw.table(COLUMNS) for _ in range(draw.randrange(1, 4))]
    try:
        pq.write_table(pa.Table.from_pylist(rows), path, compression="none")
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return  # rows that such a file cannot hold
    with refused(rows, ValueError):
        read(str(path), skip_bad=draw.random() < 0.5)


def run_logs(draw, folder):
    content = draw.lines(lambda: draw.choice([draw.value(), draw.table(["step", "entropy", "reward"])]))
    (folder / "metrics.jsonl").write_bytes(content)
    with refused(content, ValueError):
        read_metrics(folder)


def json_of_checkpoints(draw, folder):
    """The structure is what someone else wrote, with the right checksum, or the checksums themselves."""
    checkpoint = folder / "checkpoints" / "step-000001"
    structure, tree, sums = (checkpoint / "state.json").read_bytes(), draw.value(4), draw.random() < 0.5
    (checkpoint / ("checksums.json" if sums else "state.json")).write_text(json.dumps(tree))
    if not sums:
        write_checksums(checkpoint)
    with refused(tree, ValueError):
        load_state(checkpoint)
    (checkpoint / "state.json").write_bytes(structure)


def answers(draw, folder):
    response, truth, value = draw.text(PIECES), draw.text(PIECES), draw.value()
    with refused((response, truth)):
        found = final_answer(response)
        same_number(tidy(found or ""), tidy(truth))
        program(response)
        countdown_check(response, {"numbers": [3, 5], "target": 8})
    cases = {"inputs": value, "outputs": draw.choice([value, draw.value()]), "fn_name": draw.value()}
    for use, truth in ((read_truth, value), (plan_of, value), (plan_of, cases)):
        with refused(truth, ValueError):
            use(truth)
    with refused((response, value), ValueError):
        countdown_check(response, value)


KINDS = [
    configurations,
    files_of_settings,
    command_lines,
    rows_of_jsonl,
    rows_of_parquet,
    run_logs,
    json_of_checkpoints,
    answers,
]


repeatable = settings(
    derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck), max_examples=SEEDS
)


@pytest.mark.parametrize("kind", KINDS)
@repeatable
@given(seed=st.integers(0, 2**64))
def test_input(kind, folder, seed):
    draw = Draw(seed)
    for _ in range(CASES):
        kind(draw, folder)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@settings(repeatable, max_examples=MORE)
@given(seed=st.integers(0, 2**64))
def test_more_input(kind, folder, seed):
    draw = Draw(seed)
    for _ in range(CASES):
        kind(draw, folder)
