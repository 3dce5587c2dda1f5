"""Multiple choice: questions with lettered options, from the columns of MMLU-Pro and GPQA as their hubs publish them.

    MMLU-Pro    question, options (a list), answer_index
    GPQA        Question, Correct Answer, Incorrect Answer 1 … 3

The options are shuffled by a seed and the question's text, so files that order them otherwise give the same prompt, and
the position of the right one says nothing. The ground truth is its letter, which the verifier `math` reads from
`\\boxed{C}`, `Answer: C` or `the answer is (C)`.
"""

from dataclasses import dataclass
from hashlib import sha256
from string import ascii_uppercase
from typing import Any

from .question import Question
from .table import Table

MMLU_PRO = ("question", "options", "answer_index")
GPQA = ("Question", "Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


@dataclass(frozen=True)
class Choices:
    """Columns of a table with options; same interface as `Columns`."""

    names: list[str]
    """Names of the columns to read."""
    seed: int

    @staticmethod
    def of(table: Table, seed: int) -> "Choices | None":
        """Return the columns of a table in one of the forms above, or None for another table."""
        form = next((form for form in (MMLU_PRO, GPQA) if set(form) <= set(table.columns)), None)
        return Choices(list(form), seed) if form else None

    def question(self, row: dict[str, Any], source: str, where: str) -> Question:
        """Return the question in a row. Raises ValueError naming the column, if a value is missing or wrong."""
        text = _text(row, self.names[0])
        if self.names == list(GPQA):
            options, right = [_text(row, name) for name in GPQA[1:]], 0
        else:
            options, right = _options(row), row["answer_index"]
            if type(right) is not int or not 0 <= right < len(options):
                raise ValueError(f"column 'answer_index' is {right!r}, not the number of an option from 0")
        order = shuffled(text, options, self.seed)
        lines = [f"{letter}) {options[i]}" for letter, i in zip(ascii_uppercase, order, strict=False)]
        return Question("\n".join([text, "", *lines]), ascii_uppercase[order.index(right)], source, where=where)


def shuffled(text: str, options: list[str], seed: int) -> list[int]:
    """Return the order of the options of a question: a permutation that does not depend on their given order."""

    def drawn(i: int) -> bytes:
        return sha256("\n".join([str(seed), text, options[i]]).encode()).digest()

    return sorted(range(len(options)), key=drawn)


def _text(row: dict[str, Any], column: str) -> str:
    value = row.get(column)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"column {column!r} has no text")
    return value.strip()


def _options(row: dict[str, Any]) -> list[str]:
    options = row.get("options")
    if not isinstance(options, list) or not 2 <= len(options) <= len(ascii_uppercase):
        raise ValueError("column 'options' is not a list of 2 to 26 texts")
    return [_text({"options": option}, "options") for option in options]
