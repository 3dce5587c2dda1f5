"""Answers that resemble the ground truths of benchmarks and are wrong.

list(other("[0,1)"))     [("off by one", "[1,1)"), ("off by one", "[0,2)"), ("another bracket", "(0,1)"), ...]
"""

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction

from .answer_forms import SCIENTIFIC, Form, Kinds, components, constant, decimal, each, members, scalar, split, whole

ELSE = "98765"
"""A number that is no ground truth."""
_NUMBER = re.compile(r"(?<![\d.^_{])\d+(?![\d.])")


def _off_by_one(truth: str) -> Iterable[str]:
    found = list(_NUMBER.finditer(truth)) if not SCIENTIFIC.fullmatch(truth) else []
    for match in found[:1] + found[-1:]:
        yield truth[: match.start()] + str(int(match[0]) + 1) + truth[match.end() :]


def _sign(truth: str) -> Iterable[str]:
    terms = split(truth, "+-")
    if scalar(truth) and truth != "0":
        yield truth[1:] if truth[0] == "-" and len(terms) == 1 else f"-({truth})"
    if scalar(truth) and len(terms) > 1 and terms[1][0] in "+-":
        yield "".join([terms[0], {"+": "-", "-": "+"}[terms[1][0]] + terms[1][1:], *terms[2:]])


def _bracket(truth: str) -> Iterable[str]:
    swap = str.maketrans("[]()", "()[]")
    if components(truth) and re.search(r"\\infty|\[|\]", truth):
        yield truth[0].translate(swap) + truth[1:] if "-\\infty" not in truth else truth
        yield truth[:-1] + truth[-1].translate(swap) if not truth.endswith("\\infty)") else truth
    if "\\cup" in truth:
        yield truth.replace(")", "]", 1)
    if "\\geqslant" in truth:
        yield from (truth.replace("\\geqslant", sign) for sign in (">", "=", "\\le", "\\ne"))


def _permuted(truth: str) -> Iterable[str]:
    if (parts := components(truth)) and parts != parts[::-1] and "\\infty" not in truth:
        yield truth[0] + ",".join(parts[::-1]) + truth[-1]
    if "pmatrix" in truth and "&" not in truth:
        rows = truth.removeprefix("\\begin{pmatrix}").removesuffix("\\end{pmatrix}").split("\\\\")
        yield "\\begin{pmatrix}" + "\\\\".join(rows[::-1]) + "\\end{pmatrix}"


def _members(truth: str) -> Iterable[str]:
    parts = members(truth)
    if len(set(parts)) > 1:
        yield from (parts[0], parts[-1], ",".join([*parts, ELSE]), ",".join([*parts[:-1], ELSE]))
        if len(set(parts)) == len(parts):
            yield from (",".join(parts[1:]), ",".join(parts[:-1]))
    if len(parts := components(truth)) > 2:
        yield f"({','.join(parts[1:])})"


def _plus_or_minus(truth: str) -> Iterable[str]:
    yield from (truth.replace("\\pm", sign) for sign in "+-")


def _magnitude(truth: str) -> Iterable[str]:
    if found := SCIENTIFIC.fullmatch(truth):
        digits, exponent = found[1], int(found[2])
        more = f"{digits}5" if "." in digits else f"{digits}.5"
        yield from (f"{digits}e{exponent + 1}", f"{more}e{exponent}", digits)
        yield from (f"{digits}\\times 10^{{{exponent + 1}}}", f"{digits}\\times 10^{{{-exponent}}}")
        yield f"{more}\\times 10^{{{exponent}}}"
        yield f"10^{{{exponent}}}" if Fraction(digits) != 1 else f"2\\times 10^{{{exponent}}}"


def _point(truth: str) -> Iterable[str]:
    yield truth.removeprefix(".")


def _letter(truth: str) -> Iterable[str]:
    plain = re.sub(r"\\[a-zA-Z]+", lambda command: "." * len(command[0]), truth)
    if re.search(r"[a-zA-Z]{4}|[a-z]matrix|mho|np\.", plain + truth[:3]) or SCIENTIFIC.fullmatch(truth):
        return
    if found := re.search(r"(?<![a-zA-Z.^{])[a-dkmnprstvxyz](?![a-zA-Z])", plain):
        yield truth[: found.start()] + "w" + truth[found.end() :]
    if "\\angle" not in truth and (found := re.search(r"[A-Z]_\{?\d", plain)):
        yield truth[: found.start()] + found[0].lower() + truth[found.end() :]
        yield truth[: found.end() - 1] + "7" + truth[found.end() :]


def _part(truth: str) -> Iterable[str]:
    if not scalar(truth) or re.search(r"circ|^\d+_\{\d\}$", truth):
        return
    terms = split(truth.removeprefix("+"), "+-")
    if len(terms) > 1:
        yield from (terms[0], terms[-1].removeprefix("+"))
    if found := re.match(r"\\frac\{[^{}]*\}\{[^{}]*\}(?=.)", truth):
        yield found[0]
    numbers = _NUMBER.findall(truth)
    if numbers and numbers[-1] != truth.lstrip("+-"):
        yield numbers[-1]


def _hedged(truth: str) -> Iterable[str]:
    if whole(truth) is None and not decimal(truth) and not (constant(truth) and "\\" in truth):
        return
    yield from (f"{truth} or {ELSE}", f"{ELSE}, {truth}", f"{truth}\\text{{ or }}{ELSE}", f"{ELSE}={truth}")
    yield from (f"{truth}={ELSE}", f"{ELSE} \\to {truth}", f"\\neq {truth}", f"\\le {truth}", f"x > {truth}")
    yield from (f"x \\ne {truth}", f"{truth}\\text{{ and a half}}")
    if truth != "0":
        yield from (f"{truth}\\text{{ million}}", f"{truth}i", f"{truth}x")
        yield f"{truth} squared" if truth != "1" else truth


OTHER: Kinds = {
    "off by one": _off_by_one,
    "sign": _sign,
    "another bracket": _bracket,
    "order of a tuple or matrix": _permuted,
    "member missing or added": _members,
    "one of `\\pm`": _plus_or_minus,
    "another magnitude": _magnitude,
    "decimal point lost": _point,
    "another letter": _letter,
    "part of it": _part,
    "hedged or contradicted": _hedged,
}
"""Rewritings that make it another answer."""


def other(truth: str) -> Iterator[Form]:
    """Return near misses of `truth`, each once."""
    return ((kind, answer) for kind, answer in each(OTHER, truth) if answer != truth)
