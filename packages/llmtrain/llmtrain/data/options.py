"""Options of a multiple-choice question: where a table has them, and the option that a value names.

options, choices, endings        one column: a list of texts, or texts with labels ({"text": […], "label": […]},
                                 {"A": "…", "B": "…"}, [{"key": "A", "value": "…"}]), or any of these as text
A, B, C, D;  opa … opd;  option1, option2;  sol1, sol2;  answerA …    one column for each option
distractor1 …;  Incorrect Answer 1 …     one column for each wrong option; the right one is the answer
"""

import ast
import json
import re
from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any, NamedTuple

LISTS = ("options", "choices", "endings", "answerchoices")
"""Names of columns with all options."""
STEMS = ("", "option", "choice", "ending", "op", "sol", "answer")
"""Starts of the names of columns with one option each, before a letter or a number."""
WRONG = ("distractor", "incorrectanswer")
"""Starts of the names of columns with one wrong option each."""
_NUMBERED = re.compile(r"(\D*?)([a-z]|\d{1,2})")
_MARK = re.compile(r"\s*[(（]?\s*([A-Za-z])\s*[).:）．：]\s*")
_IN_LINE = re.compile(r"(?:^|,)\s*([a-z])\s*\)\s*(.*?)\s*(?=,\s*[a-z]\s*\)|$)", re.DOTALL)
_LETTER = re.compile(r"[(（]?\s*(\w+)\s*[)）.:]?")


class Option(NamedTuple):
    """One option."""

    label: str
    """Label in the file, such as A or 1."""
    text: str
    value: Any = None
    """Value in the file, of which the text is made; it may be a number."""


def plain(name: str) -> str:
    """Return the name of a column in small letters, without spaces and underscores."""
    return re.sub(r"[\s_-]", "", name.lower())


def option_columns(columns: Sequence[str]) -> tuple[list[str], bool]:
    """Return the columns with options, and True if they have only wrong ones; no columns if a table has none."""
    for name in columns:
        if plain(name) in LISTS:
            return [name], False
    groups: dict[str, dict[str, str]] = {}
    for name in columns:
        if found := _NUMBERED.fullmatch(plain(name)):
            groups.setdefault(found[1], {})[found[2]] = name
    for stem in (*STEMS, *WRONG):
        group = groups.get(stem, {})
        for first in ("a", "0", "1"):
            marks = [str(int(first) + i) if first.isdigit() else chr(ord("a") + i) for i in range(len(group))]
            there = [group[mark] for mark in marks if mark in group]
            if len(there) < 2 or there != [group[mark] for mark in marks[: len(there)] if mark in group]:
                continue
            if (not stem and not all(name in ascii_uppercase for name in there)) or (stem == "answer" and first != "a"):
                continue  # a, b and c are coefficients, answer_1 and answer_2 all right
            return there, stem in WRONG
    return [], False


def read_options(value: Any, column: str) -> list[Option]:
    """Return the options in one column; none if it is empty.

    Raises:
        ValueError: naming the column, for another form, and for less than 2 or more than 26 options.
    """
    if isinstance(value, str):
        value = _parsed(value)
    if not value and not isinstance(value, int):
        return []
    if isinstance(value, dict):
        texts, labels = value.get("text"), value.get("label")
        if isinstance(texts, list) and isinstance(labels, list) and len(texts) == len(labels):
            value = [{"key": label, "value": text} for label, text in zip(labels, texts, strict=True)]
        else:
            value = [{"key": label, "value": text} for label, text in value.items() if text is not None]
    if not isinstance(value, list) or not 2 <= len(value) <= len(ascii_uppercase):
        raise ValueError(f"column {column!r} is not a list of 2 to 26 texts")
    if all(isinstance(one, dict) for one in value):
        pairs = [(one.get("key", one.get("label")), one.get("value", one.get("text"))) for one in value]
        return [Option(str(label).strip(), text_of(text, column), text) for label, text in pairs]
    texts = [text_of(one, column) for one in value]
    marks = [_MARK.match(text) for text in texts]
    if all(mark and mark[1].upper() == letter for mark, letter in zip(marks, ascii_uppercase, strict=False)):
        texts = [text_of(text[mark.end() :], column) for text, mark in zip(texts, marks, strict=True) if mark]
    return [Option(*one) for one in zip(ascii_uppercase, texts, value, strict=False)]


def text_of(value: Any, column: str) -> str:
    """Return the text of an option, or of a number. Raises ValueError naming the column for another value."""
    text = str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    if not text:
        raise ValueError(f"column {column!r} has no text")
    return text


def _parsed(text: str) -> Any:
    """Return the list or object that a text is, as JSON, in Python's form, or as `a ) 38 , b ) 27` (MathQA)."""
    for parse in (json.loads, ast.literal_eval):
        try:
            found = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return found if isinstance(found, list | dict) else text
    found = _IN_LINE.findall(text)
    return [{"key": label, "value": one} for label, one in found] or text


def number_of(value: Any) -> int | None:
    """Return a whole number, or one that is a text; else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and re.fullmatch(r"\s*\d{1,2}\s*", value):
        return int(value)
    return int(value) if isinstance(value, int) or (isinstance(value, float) and value.is_integer()) else None


def named(value: Any, options: Sequence[Option], first: int | None, as_text: bool) -> int | None:
    """Return the place of the option that a value names by label, text or number; None if it names none.

    first: number of the first option; None if digits in a text are no number. as_text: it may be an option's text.

    Raises:
        ValueError: if it names two.
    """
    found, number = set(), number_of(value)
    if isinstance(value, str):
        said = value.strip()
        letter = _LETTER.fullmatch(said)
        found |= {i for i, option in enumerate(options) if letter and letter[1].casefold() == option.label.casefold()}
        if as_text and (number is None or first is None):
            found |= {i for i, option in enumerate(options) if option.text == said} or {
                i for i, option in enumerate(options) if option.text.casefold() == said.casefold()
            }
    elif as_text:
        found = {i for i, option in enumerate(options) if not isinstance(option.value, str) and option.value == value}
    if not found and number is not None and (first is not None or not isinstance(value, str)):
        return number - (first or 0) if 0 <= number - (first or 0) < len(options) else None
    if len({options[i].text for i in found}) > 1:
        raise ValueError(f"is {value!r}, the label of one option and the text of another")
    return min(found, default=None)
