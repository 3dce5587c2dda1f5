"""Parts of a ground truth: numbers, fractions, members, ends of an interval; None or nothing where it has none."""

import re
from fractions import Fraction

_SUM = re.compile(r"[+-]?[^+-]+")


def whole(truth: str) -> int | None:
    return int(truth) if re.fullmatch(r"-?\d{1,18}", truth) else None


def ratio(truth: str) -> Fraction | None:
    """Return the value of \\frac{a}{b} or a/b."""
    found = re.fullmatch(r"(-?)\\d?frac\{(-?\d+)\}\{(\d+)\}", truth) or re.fullmatch(r"(-?)(\d+)/(\d+)", truth)
    return Fraction(int(found[1] + "1") * int(found[2]), int(found[3])) if found else None


def decimal(truth: str) -> str | None:
    return truth if re.fullmatch(r"-?\d*\.\d+", truth) else None


def scientific(truth: str) -> tuple[str, int] | None:
    found = re.fullmatch(r"(-?\d+(?:\.\d+)?)e(-?\d+)", truth)
    return (found[1], int(found[2])) if found else None


def parts(truth: str) -> list[str]:
    """Return the members of a list a,b,c without brackets, or nothing."""
    if re.search(r"[=$]|\\text|where|quad|^\d{1,3}(?:,\d{3})+$", truth) or truth[:1] in "([{\\" or "," not in truth:
        return []
    found, depth = [""], 0
    for char in truth:
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            found.append("")
        else:
            found[-1] += char
    return [part.strip() for part in found]


def pair(truth: str) -> list[str]:
    """Return the components of (a,b,...) that is no interval, or nothing."""
    inner = re.fullmatch(r"\(([^()\[\]]+)\)", truth)
    return [part.strip() for part in inner[1].split(",")] if inner and "," in truth and "infty" not in truth else []


def interval(truth: str, question: str) -> tuple[str, str, str, str] | None:
    """Return (bracket, a, b, bracket) of an interval."""
    found = re.fullmatch(r"([(\[])([^,]+),([^,]+)([)\]])", truth)
    if not found or "cup" in truth:
        return None
    sure = "infty" in truth or "[" in truth or "]" in truth or "interval" in question
    return (found[1], found[2].strip(), found[3].strip(), found[4]) if sure else None


def terms(truth: str) -> list[str]:
    """Return the signed terms of a polynomial such as 2x^2-3x+1, or nothing."""
    if (
        not re.fullmatch(r"[-+\da-zA-Z^{} ]+", truth)
        or not re.search(r"[a-z]", truth)
        or re.search("[a-zA-Z]{3}", truth)
    ):
        return []
    found = _SUM.findall(truth.replace(" ", "").replace("^{", "^{"))
    return found if len(found) > 1 and "^{" not in truth else []


def asks_for(question: str, letter: str = "x") -> bool:
    return re.search(rf"(?:value of|[Ff]ind|[Ss]olve for|[Ww]hat is|[Cc]ompute) \$?{letter}\b", question) is not None
