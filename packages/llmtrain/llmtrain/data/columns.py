"""Columns of the prompt, answer, source and worked solution, and the question in a row.

Common names are recognised, and the turns of Open-Reasoner-Zero's dialogues; a dotted name is a field within a column
(`reward_model.ground_truth`, as in verl).
"""

import json
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..process.text import one_line
from ..verifiers.math.final_answer import last_boxed
from .question import Message, Prompt, Question
from .table import Table

PROMPTS = ("prompt", "question", "problem", "input", "0.value")
TESTS = ("test_cases", "input_output", "test")
"""Columns of a program's tests: of AceCode, of TACO and APPS, and of KodCode, whose solution is a program."""
ANSWERS = (
    *("reward_model.ground_truth", "ground_truth", "answer", "final_answer"),
    *TESTS,
    *("solution", "target", "1.ground_truth.value"),
)
SOLUTIONS = ("solution", "extra_info.solution", "extra_info.answer")
SOURCE = "data_source"
SHOWN = 30
LONGEST_ANSWER = 12
"""Words of an answer that a column named solution may hold in the place of a solution."""

_CALCULATOR = re.compile(r"<<[^<>\n]*>>")
_THOUSANDS = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")


class Columns(NamedTuple):
    """Names of a table's columns; empty if the table has no such column."""

    prompt: str
    answer: str
    solution: str
    source: str

    @classmethod
    def of(cls, table: Table, prompt: str = "", answer: str = "", source: str = "") -> "Columns":
        """Return the requested columns, or else columns with a known name.

        Raises:
            ValueError: with the existing columns, if one is missing.
        """
        answer = _choose(table, answer, ANSWERS, "an answer", "answer_key")
        solution = next((c for c in SOLUTIONS if c in table.columns and c != answer), "")
        prompt = _choose(table, prompt, PROMPTS, "a prompt", "prompt_key")
        if source:
            source = _choose(table, source, (), "a source", "source_key")
        return cls(prompt, answer, solution, source or (SOURCE if SOURCE in table.columns else ""))

    @property
    def names(self) -> list[str]:
        """Names of the columns to read."""
        return list(dict.fromkeys(column for column in self if column))

    def question(self, row: dict[str, Any], source: str, where: str) -> Question:
        """Return the question in a row; `source` is used if the row names none.

        Raises:
            ValueError: naming the column, if the prompt or the answer is missing or has a wrong form.
        """
        prompt = _within(self.prompt, parse_prompt, cell(row, self.prompt))
        truth, worked = _within(self.answer, lambda v: parse_answer(v, self.answer), cell(row, self.answer))
        found = cell(row, self.solution) if self.solution else None
        solution = worked if worked is not None else found if isinstance(found, str) and found.strip() else None
        named = cell(row, self.source) if self.source else None
        named = str(named) if isinstance(named, int) else named
        return Question(prompt, truth, named if isinstance(named, str) and named else source, solution, 1, where)


def _choose(table: Table, given: str, known: Sequence[str], what: str, key: str) -> str:
    exact = {column: column for column in table.columns}
    in_any_case = {column.lower(): column for column in reversed(table.columns)}
    for names in (exact,) if given else (exact, in_any_case):
        for column in (given,) if given else known:
            if column in names:
                return names[column]
    more = f", and {len(table.columns) - SHOWN} more" if len(table.columns) > SHOWN else ""
    there = (", ".join(one_line(column, 60) for column in table.columns[:SHOWN]) or "none") + more
    if given:
        raise ValueError(f"{table.name}: no column {given!r} ({key}); its columns: {there}")
    raise ValueError(f"{table.name}: no column of {what} ({', '.join(known)}): set {key}; its columns: {there}")


def cell(row: Any, column: str) -> Any:
    """Return the value in a column or in a field within it; None if missing."""
    if not isinstance(row, dict):
        return None
    if column in row:
        return row[column]
    first, _, rest = column.partition(".")
    return cell(row.get(first), rest) if rest else None


def _within(column: str, parse: Any, value: Any) -> Any:
    try:
        return parse(value)
    except ValueError as error:
        raise ValueError(f"column {column!r} {error}") from None


def parse_prompt(value: Any) -> Prompt:
    """Return text unchanged, or chat messages with only role and content.

    Raises:
        ValueError: for any other type, and for an empty prompt.
    """
    if value is None:
        raise ValueError("is missing")
    if isinstance(value, str):
        if not value.strip():
            raise ValueError("is empty")
        value = _sound(value) if (told := messages_in(value)) is None else told
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise ValueError(f"is {type(value).__name__}, neither text nor a list of messages")
    if not value:
        raise ValueError("is empty")
    messages = tuple(_message(i, message) for i, message in enumerate(value))
    if messages[-1]["role"] == "assistant":
        raise ValueError("ends in a message of the assistant, which may be the answer: leave it out")
    if not messages[-1]["content"].strip():
        raise ValueError("is empty: its last message has no text")
    return messages


def messages_in(text: str) -> list[Any] | None:
    """Return the messages in a text that is their JSON, as a cell of a csv file has them; None for other texts."""
    if not text.lstrip().startswith("["):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    alike = isinstance(found, list) and found and all(isinstance(one, dict) and "role" in one for one in found)
    return found if alike else None


def _message(number: int, message: Any) -> Message:
    if not isinstance(message, dict):
        raise ValueError(f"has a message {number} that is {type(message).__name__}, not role and content")
    for field in ("role", "content"):
        if message.get(field) is None:
            raise ValueError(f"has a message {number} without {field!r}")
    role, content = message["role"], _joined(message["content"])
    for field, value in (("role", role), ("content", content)):
        if not isinstance(value, str):
            raise ValueError(f"has a message {number} whose {field!r} is {type(value).__name__}, not text")
    if not role:
        raise ValueError(f"has a message {number} whose 'role' is empty")
    return {"role": _sound(role), "content": _sound(content)}


def _joined(content: Any) -> Any:
    """Return the text of a content in parts, as of APIs for images and text, if all of them are text."""
    if not isinstance(content, list) or not content:
        return content
    parts = [part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in content]
    return content if None in parts else "".join(map(str, parts))


def _sound(text: str) -> str:
    """Return the text. Raises ValueError if it contains a lone surrogate: JSON allows them, tokenizers do not."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"has half a character (a lone surrogate) at {error.start}") from None
    return text


def parse_answer(value: Any, column: str = "") -> tuple[Any, str | None]:
    """Return the ground truth, and the worked solution if the answer is one, else None.

    Text whose last line is `#### 72` (GSM8K) is a worked solution: the ground truth is 72, without thousands
    separators, and the solution is the whole text without calculator marks such as `<<48/2=24>>`. Text with a
    `\\boxed{}` in a column named `solution` (MATH) is one too: the ground truth is the content of the last box.

    Raises:
        ValueError: for an answer that is missing or empty, or neither text, number, list nor object.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        raise ValueError("is missing")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("is a number beyond all floats")
    if not isinstance(value, str | int | float | list | dict):
        raise ValueError(f"is {type(value).__name__}, neither text, number, list nor object")
    if value in ("", [], {}) or (isinstance(value, str) and not value.strip()):
        raise ValueError("is empty")
    if not isinstance(value, str):
        return value, None
    before, mark, final = _sound(value).rpartition("####")
    if mark and (not before or before.endswith("\n")) and "\n" not in final.strip():
        if not final.strip():
            raise ValueError("has no answer after ####")
        final = final.strip()
        return final.replace(",", "") if _THOUSANDS.fullmatch(final) else final, _CALCULATOR.sub("", value)
    if column.rpartition(".")[2] == "solution":
        boxed = last_boxed(value)
        if boxed is not None and boxed.strip():
            return boxed.strip(), value
        if value.rstrip().endswith(".") or len(value.split()) > LONGEST_ANSWER:
            raise ValueError("is a solution without its answer in a box")
    return value, None
