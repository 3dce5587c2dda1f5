"""Lines with names and numbers, as a trainer of one's own prints them, among them an entropy.

Step 2/7473 - Question 2/7473                    rows of a step: what stands behind the last number of a step, a
  Mean reward: 0.500                             rollout, an iteration or an update
  Loss: 0.0, Entropy: 0.2989, KL div: 0.0
│ entropy/avg │ 0.31 │ reward/avg │ 0.5 │        a table of names and numbers
  5%|▌ | 3/60 [00:03<01:00, entropy=0.31]         or behind a bar of tqdm, which counts on where it begins again
"entropy": 0.6348,                               without such numbers, a row ends where a name comes again; rows are
"epoch": 0.0067                                  numbered, from 1 again where the epoch falls
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from .console_lines import COLOURS, WRAPPED, writer
from .metric_names import translate
from .rows import LimitedFile, Row

FEWEST = 3
"""Lines with an entropy in the beginning of a file of this kind."""
_NUMBER = r"([-+]?\d{1,20}(?:\.\d{0,20})?(?:[eE][-+]?\d{1,3})?|[nN]a[nN]|[-+]?[iI]nf)"
_PAIR = re.compile(
    rf"(?<![\w./])\"?([a-zA-Z][\w./]{{0,80}}(?: [a-zA-Z][\w./]{{0,40}}){{0,2}})\"?\s{{0,20}}[:=]\s{{0,5}}{WRAPPED}"
    rf"{_NUMBER}(?![\w:/.-]|%\|)"
)
_CELLS = re.compile(rf"[│┃|]\s*([a-zA-Z][\w./@-]{{0,100}})\s*[│┃|]\s*{_NUMBER}\s*(?=[│┃|])")
"""Name and number in neighbouring cells of a table."""
_STEP = re.compile(
    r"\b(?:global[_ ]?step|train[_ ]?step|step|rollout|iteration|iter|update)s?(?: batch)?\b"
    r"[\"\s:=#\[(]{1,4}(?P<step>\d{1,12})\b(?!\.\d)",
    re.IGNORECASE,
)
_OF_ALL = re.compile("global|train", re.IGNORECASE)
"""Beginning of a mark that counts the steps of all epochs."""
_BAR = re.compile(r"(?<!\S)(?P<step>\d{1,12})(?:/\d{1,12}|it) \[\d")
"""Progress of tqdm, with or without a number of all steps; metrics follow."""
BAR = "bar "
"""Kind of such a mark, before the words of the bar."""
_DIGITS = re.compile(r"\d+")
MOST_FALLS = 5
"""Marks of a kind of which one may be lower than the one before, as where a run begins again."""
_OBJECTS = re.compile(r"\{\s*[\"}]|\[\s*[\[{]")
"""Beginning of an object of JSON, or of a list of them; a console may begin with a time in brackets."""
_MEAN = re.compile(r"^(?:mean|avg|average)_")


def is_printed(head: bytes) -> bool:
    """Return True if FEWEST lines of a beginning have an entropy, and it is no document of JSON, such as results."""
    text = head.decode("utf-8", "replace")
    lines = [] if _is_document(text.strip()) else text.splitlines()
    return sum("ntrop" in line and "entropy" in translate(_pairs(line)).values() for line in lines) >= FEWEST


def _is_document(text: str) -> bool:
    """Return True for JSON that is one object or list, maybe cut off, and not a row of objects."""
    if not _OBJECTS.match(text):
        return False
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return True
    return not text[end:].strip()


class Line(NamedTuple):
    """Line with numbers, or with the mark of a step."""

    step: int | None
    """Number of the step that it marks."""
    kind: str
    """The line up to its mark, with # for digits: marks of one kind are alike but for their numbers."""
    by: str
    """Process of the console that wrote it."""
    numbers: dict[str, float]

    @property
    def tells(self) -> bool:
        """True if it has an entropy."""
        return "entropy" in translate(self.numbers).values()


def read_printed(file: LimitedFile) -> Iterator[Row]:
    """Yield the rows of the lines; of those without a step, the ones with an entropy."""
    texts = (text for line in file.lines() for text in COLOURS.sub("", line).split("\r"))  # of bars
    lines = [line for text in texts if (line := _line(text)).numbers or line.kind]
    kind = _clock(lines)
    step, epoch, number, by, before, last = None, float("-inf"), 0, "", 0, 0
    row: dict[str, float] = {}
    for line in lines:
        marked = line.step if line.kind == kind else None
        if marked is not None and kind.startswith(BAR):
            before, last = before + (last if marked < last else 0), marked
            marked += before
        if (marked is not None and marked != step) or (step is None and line.numbers.keys() & row.keys()):
            number += (told := "entropy" in translate(row).values())
            if row and (told or step is not None):
                yield Row("", number if step is None else step, row, by)
            row, by = {}, line.by if marked is not None else ""
        if step is None and "epoch" in line.numbers:
            number, epoch = (0 if line.numbers["epoch"] < epoch else number), line.numbers["epoch"]
        step = step if marked is None else marked
        row |= line.numbers
    if row:
        yield Row("", number + 1 if step is None else step, row, by)


def _line(plain: str) -> Line:
    marks, bar = [*_STEP.finditer(plain)], _BAR.search(plain)
    marked = next((mark for mark in marks if _OF_ALL.match(mark[0])), marks[0] if marks else None)
    if marked is None and bar and "entropy" in translate(told := _pairs(plain[bar.end() :])).values():
        return Line(int(bar["step"]), BAR + _DIGITS.sub("#", plain[: bar.start()].partition("%")[0]), "", told)
    if marked is None:
        return Line(None, "", "", _pairs(plain))
    before, number = plain[: marked.start()], int(marked["step"])
    kind = _DIGITS.sub("#", f"{before}{marked[0]}").strip().lower()
    return Line(number, kind, writer(before), _pairs(plain))


def _clock(lines: Sequence[Line]) -> str:
    """Return the kind of the marks that number the steps; "" if none does.

    Text of a model may say "Step 2" too, and a note such as "in step 20 new best" comes now and then. The kind whose
    number changes most often counts, and seldom falls. It is no clock of the rows if it moves by several steps while as
    many entropies are printed.
    """
    marks: dict[str, list[int]] = {}
    for line in lines:
        if line.step is not None and marks.setdefault(line.kind, [])[-1:] != [line.step]:
            marks[line.kind].append(line.step)
    kinds = [kind for kind, steps in marks.items() if _falls(steps) <= len(steps) // MOST_FALLS]
    best = max(kinds or marks, key=lambda kind: len(marks[kind]), default="")
    if not best:
        return ""
    told = sum(line.tells for line in lines)
    apart = [later - earlier for earlier, later in pairwise(marks[best]) if later > earlier]
    coarse = told >= 2 * len(marks[best]) and (not apart or median(apart) > 1)
    return "" if coarse else best


def _falls(steps: Sequence[int]) -> int:
    return sum(later < earlier for earlier, later in pairwise(steps))


def _pairs(line: str) -> dict[str, float]:
    """Return the numbers of a line by their names, in small letters, with _ for spaces and without "mean"."""
    found = _PAIR.findall(line) + _CELLS.findall(line)
    named = ((name.strip().lower().replace(" ", "_"), value) for name, value in found)
    return {_MEAN.sub("", name): float(value) for name, value in named}
