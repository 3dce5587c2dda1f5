"""Verifiers tell right responses from wrong ones: get_verifier("math")(responses, ground_truths) -> verdicts.

Importing this package needs no torch. Text of a response is never executed in the calling process.
"""

from .verdict import Verdict
from .verifier import FAILURES, Verifier, judged
from .verifier_registry import VERIFIERS, get_verifier

__all__ = ["FAILURES", "VERIFIERS", "Verdict", "Verifier", "get_verifier", "judged"]
