"""Parts of a log that were not read, and the notes that tell them."""

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

LONGEST = 40
"""Upper limit for a text that is shown, characters."""
NEARLY = re.compile(r"\s*[-+]?\d[\d.,'\s\u202f]*%?\s*")
"""Text that a number was meant by, such as 1,234 in a table that also has 0,5 and 0.5."""
MOST_NAMES = 1000
"""Upper limit for the metrics whose texts are kept."""
MOST = 3
"""Upper limit for the metrics whose texts are told."""


class Text(NamedTuple):
    """Texts where a metric should have numbers: the first, its step, and how many there are."""

    first: str
    step: int
    times: int


@dataclass
class LeftOut:
    """Parts of a log that were not read."""

    steps: int = 0
    """Number of rows with metrics whose step is none."""
    step: Any = None
    """The first such step that there is."""
    more: int = 0
    """Number of metrics and runs beyond the limits."""
    texts: dict[str, Text] = field(default_factory=dict)
    """Texts by the metric that they belong to."""

    def add_step(self, step: Any) -> None:
        self.steps += 1
        self.step = step if self.step is None else self.step

    def add_text(self, name: str, text: str, step: int) -> None:
        if name not in self.texts and len(self.texts) == MOST_NAMES:
            return
        first, at, count = self.texts.get(name, Text(text, step, 0))
        self.texts[name] = Text(first, at, count + 1)

    def notes(self, numbers: set[str]) -> list[str]:
        """Return a sentence for each kind. numbers: metrics that have numbers, whose texts are told."""
        found = []
        if self.steps:
            first = "" if self.step is None else f" (the first is {_shown(self.step)})"
            found.append(f"{self.steps} lines without a readable step{first} are left out")
        told = [(name, one) for name, one in self.texts.items() if name in numbers or NEARLY.fullmatch(one.first)]
        for name, (text, step, count) in told[:MOST]:
            values = "1 value" if count == 1 else f"{count} values"
            found.append(f"{values} of {name} cannot be read, the first {_shown(text)} at step {step}")
        if len(told) > MOST:
            found.append(f"nor can values of {len(told) - MOST} other metrics")
        return found

    def reason(self) -> str:
        """Return why no metrics could be read; empty if the log has nothing that could be meant by one."""
        if self.texts:
            name = next(
                (name for name, one in self.texts.items() if NEARLY.fullmatch(one.first)), next(iter(self.texts))
            )
            text, step, _ = self.texts[name]
            return f"has no metrics that can be read: the first value of {name} is {_shown(text)}, at step {step}"
        if self.step is not None:
            return f"has no step that can be read: the first is {_shown(self.step)}, and a step is a whole number"
        return ""


def _shown(value: Any) -> str:
    text = " ".join(str(value).split())
    return f"“{text if len(text) <= LONGEST else text[: LONGEST - 1] + '…'}”"
