"""Question: a prompt for the model, and the ground truth for the verifier."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, str]
"""Chat message, such as {"role": "user", "content": "What is 2 + 2?"}."""

Prompt = str | tuple[Message, ...]
"""Plain text, or chat messages."""


@dataclass(frozen=True)
class Question:
    """One question of a data set."""

    prompt: Prompt
    ground_truth: Any
    """Reference answer for the verifier."""
    source: str = ""
    """`data_source` of the row, else the stem of the file, or a label that makes it unique (`labels`)."""
    solution: str | None = None
    """Worked solution, if the file has one."""
    repeats: int = 1
    """Number of rows with this question."""
    where: str = ""
    """File and row for errors, such as "aime24.parquet, row 3"."""
    columns: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """All columns of the (first) row, for a reward function; empty unless they are read."""

    @property
    def text(self) -> str:
        """The prompt without roles."""
        return self.prompt if isinstance(self.prompt, str) else "\n\n".join(m["content"] for m in self.prompt)
