"""Lines with names and numbers, as a trainer of one's own prints them, among them an entropy.

Step 2/7473 - Question 2/7473                    rows of a step: what stands behind the last number of a step, a
  Mean reward: 0.500                             rollout, an iteration or an update
  Loss: 0.0, Entropy: 0.2989, KL div: 0.0
"entropy": 0.6348,                               without such numbers, a row ends where a name comes again; rows are
"epoch": 0.0067                                  numbered, from 1 again where the epoch falls
"""

import json
import re
from collections.abc import Iterator

from .console_lines import COLOURS, WRAPPED, writer
from .metric_names import translate
from .rows import LimitedFile, Row

FEWEST = 3
"""Lines with an entropy in the beginning of a file of this kind."""
_PAIR = re.compile(
    rf"(?<![\w./])\"?([a-zA-Z][\w./]{{0,80}}(?: [a-zA-Z][\w./]{{0,40}}){{0,2}})\"?\s{{0,20}}[:=]\s{{0,5}}{WRAPPED}"
    r"([-+]?\d{1,20}(?:\.\d{0,20})?(?:[eE][-+]?\d{1,3})?|[nN]a[nN]|[-+]?[iI]nf)(?![\w:/.-])"
)
_STEP = re.compile(
    r"\b(?:global[_ ]?step|train[_ ]?step|step|rollout|iteration|iter|update)s?\b[\"\s:=#\[(]{1,4}(\d{1,12})\b(?!\.\d)",
    re.IGNORECASE,
)
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


def read_printed(file: LimitedFile) -> Iterator[Row]:
    """Yield the rows of the lines; of those without a step, the ones with an entropy."""
    step, epoch, number, by = None, float("-inf"), 0, ""
    row: dict[str, float] = {}
    for line in file.lines():
        plain = COLOURS.sub("", line)
        found, marked = _pairs(plain), _STEP.search(plain)
        if (marked and int(marked[1]) != step) or (step is None and found.keys() & row.keys()):
            number += (told := "entropy" in translate(row).values())
            if row and (told or step is not None):
                yield Row("", number if step is None else step, row, by)
            row, by = {}, writer(plain[: marked.start()]) if marked else ""
        if step is None and "epoch" in found:
            number, epoch = (0 if found["epoch"] < epoch else number), found["epoch"]
        step = int(marked[1]) if marked else step
        row |= found
    if row:
        yield Row("", number + 1 if step is None else step, row, by)


def _pairs(line: str) -> dict[str, float]:
    """Return the numbers of a line by their names, in small letters, with _ for spaces and without "mean"."""
    named = ((name.strip().lower().replace(" ", "_"), value) for name, value in _PAIR.findall(line))
    return {_MEAN.sub("", name): float(value) for name, value in named}
