"""Check for a match of a regular expression, the ground truth, in the response."""

import re
from typing import Any

from .verdict import Verdict


def check(response: str, ground_truth: Any) -> Verdict:
    """Return the verdict on `response`, with the match as its extracted part.

    A pattern may backtrack forever, so run this in a CheckPool.

    Raises:
        ValueError: for a ground truth that is no regular expression.
    """
    try:
        found = re.search(ground_truth, response)
    except (re.error, TypeError) as error:
        raise ValueError(f"the ground truth of regex is a pattern: {error}") from None
    return Verdict(True, "matched", found[0]) if found else Verdict(False, "no match")
