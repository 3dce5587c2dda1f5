"""Rules that rewrite a truth into a wrong answer close to it.

list(WRONG["another digit"]("42", ""))     ["43", "41", "420", "42.5", "422"]
"""

import re
from collections.abc import Iterable

from .answer_variant_parts import decimal, interval, pair, parts, ratio, scientific, terms, whole
from .answer_variant_rules import Rule


def _wrong_bracket(truth: str, question: str) -> Iterable[str]:
    if found := interval(truth, question):
        left, a, b, right = found
        if "infty" not in a:
            yield f"{'[' if left == '(' else '('}{a},{b}{right}"
            yield f"{']' if left == '[' else '['}{a},{b}{'[' if right == ')' else ']'}"
        if "infty" not in b:
            yield f"{left}{a},{b}{']' if right == ')' else ')'}"


def _wrong_order(truth: str, question: str) -> Iterable[str]:
    components = pair(truth)
    if components and components != components[::-1]:
        yield from (f"({','.join(turned)})" for turned in (components[::-1], components[1:] + components[:1]))


def _wrong_digit(truth: str, question: str) -> Iterable[str]:
    if (value := whole(truth)) is not None:
        yield from (str(value + 1), str(value - 1), str(value * 10), f"{value}.5", f"{value}{abs(value) % 10}")
    if decimal(truth):
        yield truth[:-1] + str((int(truth[-1]) + 3) % 10)


def _wrong_sign(truth: str, question: str) -> Iterable[str]:
    if re.fullmatch(r"-?(?:\d+(?:\.\d+)?|\\frac\{\d+\}\{\d+\}|\d*\\sqrt\{\d+\}|\d*\\pi)", truth) and truth != "0":
        yield truth[1:] if truth[0] == "-" else f"-{truth}"
        if truth[0] != "-":
            yield f"\\pm {truth}"
    if found := re.fullmatch(r"(-?\d+)([+-])(\d+)i", truth):
        yield f"{found[1]}{'-' if found[2] == '+' else '+'}{found[3]}i"


def _wrong_member(truth: str, question: str) -> Iterable[str]:
    members = parts(truth)
    if len(set(members)) > 1:
        yield from (",".join(members[1:]), ",".join(members[:-1]), ",".join([*members, "777"]), members[0])


def _wrong_fraction(truth: str, question: str) -> Iterable[str]:
    if (value := ratio(truth)) is not None and abs(value) != 1:
        yield from (
            f"\\frac{{{value.denominator}}}{{{value.numerator}}}",
            f"\\frac{{{value.numerator}}}{{{value.denominator + 1}}}",
        )
        yield f"{float(value) + 0.01:.2f}"


def _wrong_power(truth: str, question: str) -> Iterable[str]:
    if found := scientific(truth):
        yield from (f"{found[0]}\\times10^{{{found[1] + 1}}}", f"{found[0]}\\times10^{{{-found[1]}}}", found[0])


def _wrong_base(truth: str, question: str) -> Iterable[str]:
    if found := re.fullmatch(r"(\d+)_\{?(\d)\}?", truth):
        yield from (f"{found[1]}_{{{int(found[2]) + 1}}}", f"{found[1]}_{{10}}", f"{found[1][:-1]}_{{{found[2]}}}")


def _wrong_choice(truth: str, question: str) -> Iterable[str]:
    if found := re.fullmatch(r"\(([A-E])\)", truth):
        others = [letter for letter in "ABCDE" if letter != found[1]]
        yield from (
            f"({others[0]})",
            f"{found[1]} \\text{{ or }} {others[0]}",
            ", ".join("ABCDE"),
            f"\\text{{not }}{found[1]}",
        )


def _wrong_polynomial(truth: str, question: str) -> Iterable[str]:
    if found := terms(truth):
        yield from ("".join(found[:-1]), "".join(found[:-1]) + ("+" if found[-1][0] == "-" else "-") + found[-1][1:])
        yield truth + "+1"


def _wrong_radical(truth: str, question: str) -> Iterable[str]:
    if found := re.fullmatch(r"(\d+)\s*\\sqrt\{(\d+)\}", truth):
        yield from (
            f"{found[1]}+\\sqrt{{{found[2]}}}",
            f"\\sqrt{{{found[1]}\\cdot {found[2]}}}",
            f"{found[2]}\\sqrt{{{found[1]}}}",
        )
        yield f"{found[1]} \\cdot {found[2]}"
    if found := re.fullmatch(r"(\d+)\s*\\pi", truth):
        yield from (found[1], f"{found[1]}\\pi^2", f"\\frac{{{found[1]}}}{{\\pi}}")


def _wrong_pm(truth: str, question: str) -> Iterable[str]:
    if truth.count("\\pm") == 1 and "," not in truth:
        yield from (truth.replace("\\pm", "+"), truth.replace("\\pm", "-"))


def _wrong_union(truth: str, question: str) -> Iterable[str]:
    if "\\cup" in truth:
        yield from (truth.split("\\cup")[0], truth.replace("\\cup", "\\cap"), truth.replace(")", "]", 1))


def _hedged(truth: str, question: str) -> Iterable[str]:
    if whole(truth) is not None:
        yield from (
            f"{truth} \\text{{ or }} 777",
            f"777 \\text{{ or }} {truth}",
            f"777, {truth}",
            f"\\text{{not }}{truth}",
        )
        yield from (
            f"\\ge {truth}",
            f"{truth}-777",
            f"{truth}..777",
            f"\\text{{about }}777 \\text{{ or }}{truth}",
            f"{truth}!777",
        )


def _relabelled(truth: str, question: str) -> Iterable[str]:
    if (value := whole(truth)) is not None and abs(value) > 9:
        yield from (
            f"{truth}_7",
            f"{truth}_{{16}}",
            f"0x{truth}",
            f"{truth}!",
            f"\\log {truth}",
            f"{truth}^2",
            f"\\frac{{1}}{{{truth}}}",
        )
        yield from (
            f"{truth}i",
            f"{truth}\\pi",
            f"\\sqrt{{{truth}}}",
            f"{truth}x",
            f"{truth}\\text{{ million}}",
            f"{truth}e1",
        )


WRONG: dict[str, Rule] = {
    "another bracket": _wrong_bracket,
    "another order": _wrong_order,
    "another digit": _wrong_digit,
    "another sign": _wrong_sign,
    "member missing or added": _wrong_member,
    "another fraction": _wrong_fraction,
    "another power of ten": _wrong_power,
    "another base": _wrong_base,
    "another choice": _wrong_choice,
    "another polynomial": _wrong_polynomial,
    "another radical or pi": _wrong_radical,
    "one of `\\pm`": _wrong_pm,
    "another union": _wrong_union,
    "hedged": _hedged,
    "relabelled": _relabelled,
}
"""Rules that rewrite real truths into wrong answers."""
