"""Columns of the prompt, answer, source and worked solution, and the question in a row.

    system          the system message
    context, …      a blank line, and the question; or an instruction, a blank line, and its input

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
from .backslashes import lost_backslash
from .question import Message, Prompt, Question
from .table import Table

PROMPTS = ("prompt", "question", "problem", "instruction", "input", "messages", "0.value")
BEFORE = (
    *("instruction", "context", "passage", "article", "body", "paragraph", "story", "background", "premise"),
    "support",
)
"""Columns that belong before the question: of SVAMP, BoolQ, SQuAD, RACE, SciQ and others."""
AFTER = "input"
"""Column that belongs after an `instruction`, as in Alpaca."""
SYSTEMS = ("system", "system_prompt", "system_message")
"""Columns of a system prompt, which becomes a message before the question."""
TESTS = ("test_cases", "input_output", "test_list", "test")
"""Columns of a program's tests: of AceCode, of TACO and APPS, of MBPP, and of KodCode, whose solution is a program."""
SETUP = ("test_imports", "test_setup_code")
"""Columns with statements before those of `test_list`, as in MBPP."""
ENTRY_POINT = "entry_point"
"""Column with the name of the function that `test` checks, as in HumanEval."""
ANSWERS = (
    *("reward_model.ground_truth", "ground_truth", "answer.value", "answer", "final_answer"),
    *TESTS,
    *("solution", "target", "1.ground_truth.value", "output"),
)
SOLUTIONS = ("solution", "extra_info.solution", "extra_info.answer")
SOURCE = "data_source"
SHOWN = 30
LONGEST_ANSWER = 12
"""Upper limit for the words of an answer where a worked solution may stand."""

_CALCULATOR = re.compile(r"<<[^<>\n]*>>")
_THOUSANDS = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")
_WITH_UNIT = re.compile(
    r"\s*([-+]?\d[\d,]*(?:\.\d+)?(?:/\d+)?)"
    r"\s*\(\s*([^\W\d_][^()\d\\^=<>+*,;:]*|[%$¢°]\s*[a-zA-Z]*)\s*\)\s*"
)
"""Number and its unit in brackets, as in ASDiv."""
_NO_UNIT = re.compile(
    r"\b(?:mod\w*|base|in|or|and|not|if|with|for|about|approx\w*|exactly|rounded|binary|octal|decimal|hex\w*|a\.?m|p\.?m)\b",
    re.IGNORECASE,
)
"""Word that makes a bracket part of the answer."""


class Columns(NamedTuple):
    """Names of a table's columns; empty if the table has no such column."""

    prompt: str
    answer: str
    solution: str
    source: str
    before: tuple[str, ...] = ()
    """Columns of texts before a prompt that is a text."""
    after: str = ""
    """Column of a text after it."""
    system: str = ""
    entry_point: str = ""
    setup: tuple[str, ...] = ()
    most_words: int | None = None
    """Upper limit for the words of an answer without #### in a file that has answers with it; None in others."""

    @classmethod
    def of(
        cls, table: Table, prompt: str = "", answer: str = "", source: str = "", prompts: Sequence[str] = PROMPTS
    ) -> "Columns":
        """Return the requested columns, or else columns with a known name.

        Raises:
            ValueError: with the existing columns, if one is missing.
        """
        answer = _choose(table, answer, ANSWERS, "an answer", "answer_key")
        solution = next((c for c in SOLUTIONS if c in table.columns and c != answer), "")
        prompt = _choose(table, prompt, prompts, "a prompt", "prompt_key")
        if source:
            source = _choose(table, source, (), "a source", "source_key")
        rest = {column.lower(): column for column in reversed(table.columns) if column not in (prompt, answer)}
        before = tuple(rest[name] for name in BEFORE if name in rest)
        after = rest.get(AFTER, "") if prompt.lower() == "instruction" else ""
        system = next((rest[name] for name in SYSTEMS if name in rest), "")
        source = source or (SOURCE if SOURCE in table.columns else "")
        entry_point = ENTRY_POINT if answer == "test" and ENTRY_POINT in table.columns else ""
        setup = tuple(name for name in SETUP if answer == "test_list" and name in table.columns)
        return cls(prompt, answer, solution, source, before, after, system, entry_point, setup)

    def counted(self, table: Table) -> "Columns":
        """Return the columns with the limit for answers without ####: one word if most answers of the file have it."""
        if self.answer in TESTS:
            return self
        texts = [cell(row, self.answer) for _, row in table.rows([self.answer])]
        marked = [_marked(text) is not None for text in texts if isinstance(text, str)]
        return self._replace(most_words=1 if 2 * sum(marked) > len(marked) else LONGEST_ANSWER) if any(marked) else self

    @property
    def names(self) -> list[str]:
        """Names of the columns to read."""
        single = (self.prompt, self.answer, self.solution, self.source, self.after, self.system, self.entry_point)
        return list(dict.fromkeys(column for column in (*single, *self.before, *self.setup) if column))

    def question(self, row: dict[str, Any], source: str, where: str) -> Question:
        """Return the question in a row; `source` is used if the row names none.

        Raises:
            ValueError: naming the column, if the prompt or the answer is missing or has a wrong form.
        """
        prompt = self.asked(row)
        truth, worked = _within(self.answer, lambda v: parse_answer(v, self.answer), cell(row, self.answer))
        words = len(truth.split()) if isinstance(truth, str) and worked is None else 0
        if self.most_words is not None and words > self.most_words:
            raise ValueError(f"column {self.answer!r} is a text of {words} words without ####, which other rows have")
        if self.entry_point:
            truth = {"test": truth, ENTRY_POINT: cell(row, self.entry_point)}
        if isinstance(truth, list):
            truth = [*(line for name in self.setup for line in _lines(cell(row, name))), *truth]
        found = cell(row, self.solution) if self.solution else None
        solution = worked if worked is not None else found if isinstance(found, str) and found.strip() else None
        return Question(prompt, truth, self.named(row, source), solution, 1, where)

    def asked(self, row: dict[str, Any]) -> Prompt:
        """Return the prompt in a row: a text with those around it, or messages, after the row's system prompt."""
        prompt: Prompt = _within(self.prompt, parse_prompt, cell(row, self.prompt))
        if isinstance(prompt, str):
            columns = (*self.before, self.prompt, *filter(None, [self.after]))
            parts = [prompt if c == self.prompt else _within(c, parse_passage, cell(row, c)) for c in columns]
            prompt = "\n\n".join(part for part in parts if part is prompt or part not in prompt)
        system = cell(row, self.system) if self.system else None
        if isinstance(system, str) and system.strip():
            messages = ({"role": "user", "content": prompt},) if isinstance(prompt, str) else prompt
            if messages[0]["role"] != "system":
                return ({"role": "system", "content": _within(self.system, _sound, system)}, *messages)
        return prompt

    def named(self, row: dict[str, Any], source: str) -> str:
        """Return the source that a row names, or else `source`."""
        named = cell(row, self.source) if self.source else None
        named = str(named) if isinstance(named, int) else named
        return named if isinstance(named, str) and named else source


def _lines(value: Any) -> list[str]:
    """Return statements in a cell, a text or a list of texts."""
    return [line for line in (value if isinstance(value, list) else [value]) if isinstance(line, str) and line.strip()]


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


def shown(value: Any) -> str:
    """Return a value as errors show it, in at most 40 characters."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


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


def parse_passage(value: Any) -> str:
    """Return the text beside a question: as it is, or lists of texts as lines, or lists of fields as paragraphs.

    Raises:
        ValueError: for any other type.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return _sound(value.strip())
    if isinstance(value, list):
        return "\n".join(filter(None, map(parse_passage, value)))
    if isinstance(value, dict) and value and all(isinstance(some, list) for some in value.values()):
        return "\n\n".join(parse_passage(list(one)) for one in zip(*value.values(), strict=False))
    raise ValueError(f"is {type(value).__name__}, neither text nor a list of texts: rename it to leave it out")


def said(prompt: Prompt) -> str:
    """Return a prompt that is a text, or its last message."""
    return prompt if isinstance(prompt, str) else prompt[-1]["content"]


def with_text(prompt: Prompt, text: str) -> Prompt:
    """Return the prompt with another text, in its last message if it has messages."""
    return text if isinstance(prompt, str) else (*prompt[:-1], {**prompt[-1], "content": text})


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
    `\\boxed{}` in a column named `solution` (MATH) is one too: the ground truth is the content of the last box. Of a
    number with its unit in brackets, `9 (apples)` (ASDiv), the ground truth is the number.

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
    texts = value if isinstance(value, list) else [value]
    if lost := next((word for text in texts if column not in TESTS and (word := lost_backslash(text))), ""):
        raise ValueError(f"has a control character for the backslash of {lost}: write \\{lost} in JSON")
    if not isinstance(value, str):
        return value, None
    if (final := _marked(_sound(value))) is not None:
        if not final:
            raise ValueError("has no answer after ####")
        final = _without_unit(final)
        return final.replace(",", "") if _THOUSANDS.fullmatch(final) else final, _CALCULATOR.sub("", value)
    if column.rpartition(".")[2] == "solution":
        boxed = last_boxed(value)
        if boxed is not None and boxed.strip():
            return boxed.strip(), value
        if value.rstrip().endswith(".") or len(value.split()) > LONGEST_ANSWER:
            raise ValueError("is a solution without its answer in a box")
    return _without_unit(value), None


def _marked(text: str) -> str | None:
    """Return the answer in the last line of a text after ####, "" if there is none; None if it has no such line."""
    before, mark, final = text.rpartition("####")
    return final.strip() if mark and (not before or before.endswith("\n")) and "\n" not in final.strip() else None


def _without_unit(text: str) -> str:
    """Return the number of a text that is a number with its unit in brackets; other texts as they are."""
    found = _WITH_UNIT.fullmatch(text)
    return found[1] if found and not _NO_UNIT.search(found[2]) else text
