"""A question: what the model is asked, and what the verifier compares its answer with."""

from dataclasses import dataclass
from typing import Any

Message = dict[str, str]
"""{"role": "user", "content": "What is 2 + 2?"}"""

Prompt = str | tuple[Message, ...]
"""Plain text, or chat messages."""


@dataclass(frozen=True)
class Question:
    """One question of a data set."""

    prompt: Prompt
    ground_truth: Any
    """What the verifier is given."""
    source: str = ""
    """`data_source` of the row, else the stem of the file, or what keeps it apart from others (`labels`)."""
    solution: str | None = None
    """Worked solution, where the file has one."""
    repeats: int = 1
    """Rows of the file that ask this same question."""
    where: str = ""
    """File and row, for errors: "aime24.parquet, row 3"."""

    @property
    def text(self) -> str:
        """The prompt without roles."""
        return self.prompt if isinstance(self.prompt, str) else "\n\n".join(m["content"] for m in self.prompt)
