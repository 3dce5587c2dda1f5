"""LiveCodeBench: questions with program tests, from the columns of livecodebench/code_generation_lite.

    question_content, starter_code, public_test_cases, private_test_cases, metadata

The tests are JSON; the private ones may be packed as base64 of zlib of a pickled JSON text (lcb_runner,
CodeGenerationProblem). The ground truth is the object of inputs and outputs that the verifier `python` runs: on
standard input and output, or, if the metadata name a function, as calls whose arguments are the lines of an input.
"""

import base64
import json
import zlib
from dataclasses import dataclass
from pickletools import genops
from typing import Any

from .question import Question
from .table import Table

COLUMNS = ("question_content", "starter_code", "public_test_cases", "private_test_cases", "metadata")
TEXT = ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8")
AROUND = ("PROTO", "FRAME", "MEMOIZE", "BINPUT", "LONG_BINPUT", "STOP")
"""Opcodes of a pickled text: of the text, and around it. Nothing is unpickled: a file must not run code."""
SOURCE = "livecodebench"
"""Source of all questions: the releases are one benchmark in files test.jsonl, test2.jsonl and so on."""


@dataclass(frozen=True)
class LiveCode:
    """Columns of LiveCodeBench; same interface as `Columns`."""

    names: tuple[str, ...] = COLUMNS
    """Names of the columns to read."""

    @staticmethod
    def of(table: Table) -> "LiveCode | None":
        """Return the columns if a table has all of them, else None."""
        return LiveCode() if set(COLUMNS) <= set(table.columns) else None

    def question(self, row: dict[str, Any], source: str, where: str) -> Question:
        """Return the question in a row. Raises ValueError naming the column, if a value is missing or broken."""
        content, starter = row.get("question_content"), row.get("starter_code") or ""
        if not isinstance(content, str) or not content.strip():
            raise ValueError("column 'question_content' has no text")
        name = _json(row, "metadata", dict).get("func_name")
        tests = [*_json(row, "public_test_cases", list), *_json(row, "private_test_cases", list)]
        try:
            pairs = [_call(x["input"], x["output"]) if name else (x["input"], x["output"]) for x in tests]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"column '{COLUMNS[2]}' or '{COLUMNS[3]}' has a broken test: {error!r}") from None
        if not pairs:
            raise ValueError("column 'public_test_cases' has no test")
        how = f"Complete this Python code:\n```python\n{starter.rstrip()}\n```" if starter.strip() else STDIO
        inputs, outputs = map(list, zip(*pairs, strict=True))
        truth = {"inputs": inputs, "outputs": outputs} | ({"fn_name": name} if name else {})
        return Question(f"{content.strip()}\n\n{how}", truth, SOURCE, where=where)


STDIO = "Write a Python program that reads standard input and writes standard output."
"""End of the prompt of a question without starter code."""


def _call(given: str, wanted: str) -> tuple[list[Any], list[Any]]:
    """Return the arguments of a call, one JSON value a line, and its result as the only item of a list."""
    return [json.loads(line) for line in given.split("\n")], [json.loads(wanted)]


def _json(row: dict[str, Any], column: str, kind: type) -> Any:
    """Return the JSON value in a column, packed or not. Raises ValueError naming the column if it is none."""
    text: Any = row.get(column)
    try:
        found = json.loads(text if text[:1] in "[{" else _unpacked(text))
    except (TypeError, ValueError, zlib.error) as error:
        raise ValueError(f"column {column!r} is no JSON, packed or not: {type(error).__name__}") from None
    if not isinstance(found, kind):
        raise ValueError(f"column {column!r} is {type(found).__name__}, not a {kind.__name__}")
    return found


def _unpacked(text: str) -> str:
    """Return the text in a packed column, read from the opcodes. Raises ValueError for a pickle of anything else."""
    found = [(code.name, value) for code, value, _ in genops(zlib.decompress(base64.b64decode(text)))]
    texts = [value for name, value in found if name in TEXT]
    if len(texts) != 1 or not {name for name, _ in found} <= {*TEXT, *AROUND}:
        raise ValueError("pickle of something else than a text")
    return str(texts[0])
