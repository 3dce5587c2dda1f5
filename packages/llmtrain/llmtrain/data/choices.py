"""Multiple choice: questions with lettered options, as MMLU, ARC, GPQA, MedMCQA and others are published.

    question, choices, answer ► text, a blank line, "A) …" to "D) …" ► the letter of the right option

`options` says where a table has its options. They are shuffled by a seed and the question's text, so files that order
them otherwise give the same prompt, and the position of the right one says nothing; options that speak of each other
("both A and B") stay as they are. The ground truth is a letter, which the verifier `math` reads from `\\boxed{C}`,
`Answer: C` or `the answer is (C)`. Prompts that have their options already are not changed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from string import ascii_uppercase
from typing import Any

from .columns import ANSWERS, PROMPTS, Columns, cell, said, shown, with_text
from .options import Option, named, number_of, option_columns, plain, read_options, text_of
from .question import Question
from .table import Table

STEMS = ("question_stem", "query", "ctx", "goal", "sentence")
"""Columns of questions that only tables with options have: OpenBookQA, LogiQA, HellaSwag, PIQA, WinoGrande."""
PLACES = ("answerindex", "answeridx", "answerkey", "answerletter", "correctoption", "correctindex", "cop")
"""Columns that name the right option by its letter or number. The first of these and the next that does is used."""
TEXTS = ("answer", "correctanswer", "correct", "gold", *(plain(name) for name in ANSWERS))
"""Columns that name it by its letter, number or text."""
LAST = ("label",)
FROM_0 = ("answerindex",)
"""Columns whose numbers count from 0, whatever they are."""
_SPEAKS = re.compile(r"\b(?:above|below|of these)\b|\b[A-J]\)?\s*(?:and|or|&|,)\s*\(?[A-J]\b|\([a-j]\) (?:and|or)\b")
"""Words of an option about others."""
_MARKED = r"(?<!\w)[(（]?{}\s?[).:）．：、] ?"
"""A letter as it stands before an option."""


@dataclass(frozen=True)
class Choices:
    """Columns of a table with options; same interface as `Columns`."""

    columns: Columns
    """Columns of the question, its context and its source."""
    options: tuple[str, ...]
    """Column with all options, or those with one each."""
    wrong: bool
    """The options are the wrong ones: the answer is the text of the right one."""
    answers: tuple[str, ...]
    """Columns that name the right option."""
    seed: int
    firsts: Mapping[str, int | None] = field(default_factory=dict)
    """Number of the first option in each of `answers`; None where digits in a text are no number."""
    unsure: str = ""
    """Column whose numbers do not show whether they count from 0 or from 1."""

    @staticmethod
    def of(table: Table, seed: int, prompt: str = "", answer: str = "", source: str = "") -> "Choices | None":
        """Return the columns of a table with options, or None for another table; names as in `Columns.of`."""
        options, wrong = option_columns(table.columns)
        order = {name: i for i, name in enumerate((*PLACES, *TEXTS, *LAST))}
        known = sorted((c for c in table.columns if plain(c) in order), key=lambda c: order[plain(c)])
        answers = tuple(c for c in ((answer,) if answer else known) if c not in options)
        if not options or not answers:
            return None
        columns = Columns.of(table, prompt, answers[0], source, (*PROMPTS, *STEMS))
        found = Choices(columns, tuple(options), wrong, answers, seed)
        return found if wrong else found._counted(table)

    @property
    def names(self) -> list[str]:
        """Names of the columns to read."""
        return list(dict.fromkeys([*self.columns.names, *self.options, *self.answers]))

    def question(self, row: dict[str, Any], source: str, where: str) -> Question:
        """Return the question in a row; one without any option is read as other tables are.

        Raises:
            ValueError: naming the column, if a value is missing or wrong.
        """
        options = self._options(row)
        if not options:
            if isinstance(truth := cell(row, self.answers[0]), int):
                raise ValueError(f"column {self.options[0]!r} is empty, and {self.answers[0]!r} is {shown(truth)}")
            return self.columns.question(row, source, where)
        right = 0 if self.wrong else self._right(row, options)[0][1]
        prompt, given = self.columns.asked(row), cell(row, self.columns.prompt)
        source, text = self.columns.named(row, source), said(prompt)
        if _has(text, options):
            return Question(prompt, ascii_uppercase[right], source, where=where)
        texts, order = [option.text for option in options], list(range(len(options)))
        if not any(_SPEAKS.search(one) for one in texts):
            order = shuffled(given.strip() if isinstance(given, str) else text, texts, self.seed)
        lines = [f"{letter}) {texts[i]}" for letter, i in zip(ascii_uppercase, order, strict=False)]
        whole = with_text(prompt, "\n".join([text.strip(), "", *lines]))
        return Question(whole, ascii_uppercase[order.index(right)], source, where=where)

    def disagreement(self, row: dict[str, Any]) -> str:
        """Return what two columns of a row say that name different options, and which is used; "" if none do."""
        options = [] if self.wrong else self._options(row)
        (used, place), *others = self._right(row, options) if options else [("", 0)]
        other = next((column for column, at in others if options[at].text != options[place].text), "")
        if not other:
            return ""
        told = [f"{column!r} is {shown(cell(row, column))}" for column in (used, other)]
        return f"{' and '.join(told)}; {used!r} is used"

    def _options(self, row: dict[str, Any]) -> list[Option]:
        if len(self.options) == 1:
            return read_options(cell(row, self.options[0]), self.options[0])
        there = [name for name in self.options if cell(row, name) is not None]
        if self.wrong:
            return [Option("", text_of(cell(row, name), name)) for name in (self.answers[0], *self.options)]
        if missing := [name for name in self.options[: max(2, len(there))] if there and name not in there]:
            raise ValueError(f"column {missing[0]!r} has no text")
        return [
            Option(letter, text_of(cell(row, name), name), cell(row, name))
            for letter, name in zip(ascii_uppercase, there, strict=False)
        ]

    def _right(self, row: dict[str, Any], options: Sequence[Option]) -> list[tuple[str, int]]:
        """Return the columns that name an option, with its place; the first is used. ValueError if there is none."""
        found: list[tuple[str, int]] = []
        problem = f"column {self.answers[0]!r} is missing"
        for column, value in reversed(self._given(row)):
            try:
                place = named(value, options, self.firsts.get(column, 0), plain(column) not in (*PLACES, *LAST))
            except ValueError as error:
                place, problem = None, f"column {column!r} {error}"
            else:
                problem = f"column {column!r} is {shown(value)}, neither the label, text nor number of an option"
            if place is not None:
                found.insert(0, (column, place))
        if not found:
            raise ValueError(problem)
        return found

    def _given(self, row: dict[str, Any]) -> list[tuple[str, Any]]:
        return [(c, value) for c in self.answers if (value := cell(row, c)) is not None and value != ""]

    def _counted(self, table: Table) -> "Choices":
        """Return the columns with the numbers of the first option, as the values of the file show them.

        Numbers of a column count from 0 if one is 0, and from 1 if one is the number of options; else as in the data
        sets that name their columns so, which is unsure if the column names the option of a row. Digits are a text
        where each is the text of an option, or some value of the column is a word or beyond the options.
        """
        seen: dict[str, set[str]] = {column: set() for column in self.answers}
        for _, row in table.rows(self.names):
            try:
                options = self._options(row) if isinstance(row, dict) else []
            except ValueError:
                continue
            for at, (column, value) in enumerate(self._given(row) if options and isinstance(row, dict) else ()):
                seen[column] |= set() if at else {"first"}
                number, texts = number_of(value), [option.text for option in options]
                seen[column].add("word" if number is None else "digits" if isinstance(value, str) else "number")
                if number is not None:
                    seen[column] |= {"0"} if number == 0 else {"last"} if number == len(options) else set()
                    seen[column] |= {"beyond"} if number > len(options) else set()
                    seen[column] |= set() if isinstance(value, str) and value.strip() in texts else {"place"}
        firsts: dict[str, int | None] = {}
        numbered, unsure = self.options[0][-1] == "1", ""
        for column, found in seen.items():
            kind = plain(column)
            firsts[column] = 1 if "last" in found and "0" not in found and kind not in FROM_0 else 0
            if (
                kind not in (*PLACES, *LAST)
                and "digits" in found
                and (found & {"word", "beyond"} or "place" not in found)
            ):
                firsts[column] = None
            elif not found & {"0", "last"} and kind not in FROM_0:
                if numbered or plain(self.options[0]) == "answera":
                    firsts[column] = int(numbered != (kind in LAST))
                if {"place", "first"} <= found:
                    unsure = unsure or column
        return replace(self, firsts=firsts, unsure=unsure)


def _has(text: str, options: Sequence[Option]) -> bool:
    """Return True if a text has all options already, each after its letter."""
    words = " ".join(text.split())
    return all(
        re.search(_MARKED.format(letter) + re.escape(" ".join(option.text.split())), words)
        for letter, option in zip(ascii_uppercase, options, strict=False)
    )


def shuffled(text: str, options: list[str], seed: int) -> list[int]:
    """Return the order of the options of a question: a permutation that does not depend on their given order."""

    def drawn(i: int) -> bytes:
        return sha256("\n".join([str(seed), text, options[i]]).encode()).digest()

    return sorted(range(len(options)), key=drawn)
