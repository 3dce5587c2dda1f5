"""The outcome of a check: what tasks and verifiers have in common."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """Outcome of one check of a response."""

    correct: bool
    reason: str
    """What was found equal, or what is wrong."""
    extracted: str | None = None
    """The part of the response that was judged; None where there is none, or where it is the whole response."""
