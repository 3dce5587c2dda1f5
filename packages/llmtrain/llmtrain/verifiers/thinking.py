"""Part of a response that may hold its answer: what follows the thinking.

<think>so \\boxed{5} but</think> It is 4.     " It is 4."
<think>so \\boxed{5} but                      None: the thinking does not end
"""

MARKS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
)
"""Beginning and end of thinking, as published models write them."""
UNFINISHED = "no answer: the thinking does not end"


def after_thinking(response: str) -> str | None:
    """Return the text after the last thought; None if that thought has no end, the response if there is no thought."""
    for begin, end in MARKS:
        _, closed, rest = response.rpartition(end)
        if begin in rest:
            return None
        if closed:
            response = rest
    return response


def after_mark(response: str, mark: str) -> str | None:
    """Return the text after the last `mark`; None if there is none."""
    _, found, rest = response.rpartition(mark)
    return rest if found else None
