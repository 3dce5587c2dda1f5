"""Outcome of a check, shared by tasks and verifiers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """Outcome of one check of a response."""

    correct: bool
    reason: str
    """Explanation, such as "equal as numbers" or "timed out after 5 s"."""
    extracted: str | None = None
    """Part of the response that was judged; None if there is none, or if it is the whole response."""
    undecided: bool = False
    """True if the check could not tell; the response then counts as wrong."""
    copied: bool = False
    """True if a correct answer stands in the prompt."""
