"""Answers to questions in mathematics that take no work: pieces of the question, guesses, the truth relabelled.

    list(formulas("If $x+2=5$, find $x$."))     ["x+2=5", "x", "2", "5", "x+2"]
    is_truth("x = \\frac{2}{4}", "0.5")         True

The check of what is the truth itself shares no code with the verifiers.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import permutations
from typing import NamedTuple


class Answer(NamedTuple):
    """Response, and the final answer that it gives."""

    response: str
    final: str


Attack = Callable[[str, str, str], Iterable[Answer]]
"""Takes the question, its truth and the commonest truth of the data set."""

MAX_PIECES, MAX_NUMBERS = 12, 4
"""Upper limits for pieces of a question that are tried, and numbers that are combined; the last ones are kept."""
_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.S)
_PLAIN = re.compile(r"[-+(]*\d[\d\s.,:+*/^×÷()-]*[\d)]|\d")
_NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?")
_RELATION = re.compile(r"\\(?:leq?slant|geq?slant|leq?|geq?|neq?|equiv|approx|in|to)(?![a-zA-Z])|[=<>≤≥]")


def boxed(answer: str) -> Answer:
    return Answer(f"The answer is \\boxed{{{answer}}}.", answer)


# Pieces of a question -------------------------------------------------------------------------------------------------


_SPACING = re.compile(r"\\(?:q?quad|[,;:! ])|\s")


def formulas(question: str) -> list[str]:
    """Return the formulas of a question and, outside of them, its arithmetic expressions and numbers."""
    found = [next(part for part in match.groups() if part is not None).strip() for match in _FORMULA.finditer(question)]
    plain = [match[0].strip(" .,:") for match in _PLAIN.finditer(_FORMULA.sub(" ; ", _without_frame(question)))]
    pieces = [piece for piece in dict.fromkeys([*plain, *found]) if _SPACING.sub("", piece) and _balanced(piece)]
    return pieces[-MAX_PIECES:]


def sides(question: str) -> list[str]:
    """Return the sides of the equations and other relations in a question, and the members of its lists."""
    parts = [
        part.strip(" .,;")
        for formula in formulas(question)
        for separator in (_RELATION, re.compile(r","))
        for part in separator.split(formula)
        if part.strip(" .,;") != formula
    ]
    return [part for part in dict.fromkeys(parts) if part and _balanced(part)][-MAX_PIECES:]


def _without_frame(question: str) -> str:
    """Return a question without the instructions that data sets put around it."""
    return re.sub(r"Solve the following math problem[^\n]*|Remember to put your answer[^\n]*", "", question)


def _balanced(text: str) -> bool:
    return text.count("{") == text.count("}") and text.count("(") >= text.count(")")


def last_number(question: str) -> str | None:
    found = _NUMBER.findall(_without_frame(question))
    return found[-1].lstrip("-") if found else None


# Attacks --------------------------------------------------------------------------------------------------------------


def _formula(question: str, truth: str, commonest: str) -> Iterator[Answer]:
    for formula in formulas(question):
        yield boxed(formula)
        yield Answer(f"The answer is ${formula}$.", formula)


def _side(question: str, truth: str, commonest: str) -> Iterator[Answer]:
    yield from map(boxed, sides(question))


def _rewritten(question: str, truth: str, commonest: str) -> Iterator[Answer]:
    """Yield formulas in other words: still no work."""
    for formula in [piece for piece in formulas(question) if not is_number(piece) and not _RELATION.search(piece)][-4:]:
        forms = ["{}+0", "({})", "1 \\cdot ({})", "\\frac{{{}}}{{1}}", "-(-({}))", "\\frac{{2({})}}{{2}}", "={}"]
        forms += ["({})^1", "x = {}", "\\text{{the value of }}{}"]
        yield from (boxed(form.format(formula))._replace(final=formula) for form in forms)


def _small(question: str, truth: str, commonest: str) -> Iterator[Answer]:
    yield from map(boxed, "012")


def _commonest(question: str, truth: str, commonest: str) -> Iterator[Answer]:
    yield boxed(commonest)


def _base(question: str, truth: str, commonest: str) -> Iterator[Answer]:
    """Yield the digits of the truth in another base."""
    if found := re.fullmatch(r"(\d+)_\{?(\d+)\}?", truth):
        yield from (boxed(f"{found[1]}_{base}") for base in (7, 8, 9) if base != int(found[2]))
        yield boxed(f"{found[1]}_{{{int(found[2]) + 1}}}")
    elif re.fullmatch(r"\d{2,}", truth) and not re.search(r"\bbase\b|_\{?\d", question):
        yield from (boxed(f"{truth}_7"), boxed(f"{truth}_{{16}}"), boxed(f"{truth}_{{\\text{{seven}}}}"))
        yield from (boxed(f"{truth}\\text{{ (base }}7)"), boxed(f"({truth})_7"), boxed(f"0x{truth}"))


_OTHER_UNITS = {
    r"\^\{?\\circ\}?|°|\\degree": ("\\text{ rad}", "\\text{ radians}", "'"),
    r"\\?%": ("\\text{ per mille}", "‰"),
    r"\\(?:text|mathrm)\{\s*~?cm\s*\}": ("\\text{ m}", "\\text{ km}", "\\text{ inches}"),
    r"\\(?:text|mathrm)\{\s*~?(?:m|meters)\s*\}": ("\\text{ cm}", "\\text{ km}", "\\text{ feet}"),
    r"\\(?:text|mathrm)\{\s*~?(?:minutes|min)\s*\}": ("\\text{ hours}", "\\text{ seconds}"),
    r"\\(?:text|mathrm)\{\s*~?(?:dollars)\s*\}": ("\\text{ cents}",),
}


def _unit(question: str, truth: str, commonest: str) -> Iterator[Answer]:
    """Yield the number of the truth in another unit."""
    for unit, others in _OTHER_UNITS.items():
        if found := re.search(rf"(?:{unit})$", truth.strip()):
            yield from (boxed(truth.strip()[: found.start()] + other) for other in others)


def _row(question: str, truth: str, commonest: str) -> Iterator[Answer]:
    """Yield all pieces of the question at once; the last of several boxes is the final answer."""
    numbers = list(dict.fromkeys(_NUMBER.findall(_without_frame(question))))
    for pieces in (formulas(question), sides(question), numbers, ["0", "1", "2", "3", commonest, truth]):
        if len(pieces) < 2:
            continue
        for between in (", ", " or ", " ", "; ", " = ", " and "):
            yield boxed(between.join(pieces))
        other = [piece for piece in pieces if not is_truth(piece, truth)]
        if other:
            boxes = [*(piece for piece in pieces if piece != other[-1]), other[-1]]
            yield Answer(" ".join(f"\\boxed{{{piece}}}" for piece in boxes), boxes[-1])
            yield Answer(", ".join(f"$\\boxed{{{piece}}}$" for piece in boxes), boxes[-1])
    yield boxed(_without_frame(question).strip())


def _last(question: str, truth: str, commonest: str) -> Iterator[Answer]:
    if (number := last_number(question)) is not None:
        yield boxed(number)
        yield Answer(f"I think it is {number}", number)
        yield Answer(f"#### {number}", number)


def _two_numbers(question: str, truth: str, commonest: str) -> Iterator[Answer]:
    """Yield two numbers of the question with a sign between them, not computed."""
    numbers = list(dict.fromkeys(_NUMBER.findall(_without_frame(question).replace("-", " "))))[-MAX_NUMBERS:]
    for a, b in permutations(numbers, 2):
        yield boxed(f"{a} - {b}")
        if a < b:
            yield from (boxed(f"{a} {sign} {b}") for sign in ("+", "\\times", "\\div", "*"))


_WORDS = (
    *(
        "",
        " ",
        "x",
        "?",
        "\\text{see above}",
        "\\text{the answer}",
        "\\text{answer}",
        "N/A",
        "\\infty",
        "\\mathbb{R}",
        "\\text{all}",
    ),
    *(
        "\\text{Solution}",
        "\\text{correct}",
        "{",
        ":",
        "\\ldots",
        "\\text{an integer}",
        "\\mathbb{Z}",
        "\\text{a number}",
        "\\pm",
        "=",
    ),
    *(
        "[-10000, 10000]",
        "x \\in \\mathbb{R}",
        "\\text{True}",
        "\\emptyset",
        "\\text{None}",
        "nan",
        "\\checkmark",
        "x = x",
    ),
)


def _words(question: str, truth: str, commonest: str) -> Iterator[Answer]:
    """Yield answers that say nothing."""
    yield from map(boxed, _WORDS)
    yield from (Answer(text, text) for text in ("", "\\boxed{", "Answer:", "####", "The answer is correct."))
    yield Answer(f"Answer: {', '.join(map(str, range(1000)))}, ...", "")


ATTACKS: dict[str, Attack] = {
    "its formulas": _formula,
    "sides of its equations": _side,
    "formulas rewritten": _rewritten,
    "0, 1, 2": _small,
    "commonest truth": _commonest,
    "truth in another base": _base,
    "truth in another unit": _unit,
    "all in a row": _row,
    "its last number": _last,
    "two of its numbers, not computed": _two_numbers,
    "words that say nothing": _words,
}
"""Attacks on every question."""


def _sum(question: str, truth: str, commonest: str) -> Iterator[Answer]:
    """Yield the sum of a generated question, dressed up."""
    found = re.search(r"What is ([^?]*\d)\?", question)
    if not found or not re.fullmatch(r"[\d +*/-]+", found[1]):
        return
    sum_ = found[1]
    terms = re.findall(r"[+-]?\s*\d+(?: \* \d+)*", sum_)
    swapped = " ".join([*terms[1:], f"+ {terms[0]}"]).removeprefix("+").strip()
    first, rest = terms[0].split(" * ")[0], sum_[len(terms[0].split(" * ")[0]) :]
    negated = "".join(("+" if term[0] == "-" else "-") + term.lstrip("+- ") for term in terms).removeprefix("+")
    forms = [sum_, swapped, f"{sum_} + 0", f"({sum_})", f"\\frac{{{sum_}}}{{1}}", f"-({negated})", f"2({sum_})/2"]
    forms += [f"\\frac{{2({sum_})}}{{2}}", f"{int(first) - 1} + 1{rest}", f"1 \\cdot ({sum_})", f"\\sqrt{{({sum_})^2}}"]
    forms += [sum_.replace(" * ", " \\times "), sum_.replace(" ", ""), f"\\text{{{sum_}}}", f"{first}.0{rest}"]
    forms += [f"\\lfloor {sum_} \\rfloor", f"|{sum_}|", f"x = {sum_}", f"{sum_} = x", f"\\binom{{{sum_}}}{{1}}"]
    forms += [
        f"\\sum_{{k=1}}^{{1}} ({sum_})",
        f"\\max({sum_}, {sum_})",
        f"\\log_{{2}} 2^{{{sum_}}}",
        f"{sum_} = {sum_}",
    ]
    for form in forms:
        yield boxed(form)
        yield Answer(f" The answer is {form}.", form)
        yield Answer(f" The answer is ${form}$.", form)


REWORKED: dict[str, Attack] = {"its sum, not computed": _sum}
"""Attacks on generated sums."""


# The truth itself -----------------------------------------------------------------------------------------------------


def is_truth(answer: str, truth: str) -> bool:
    """Return whether an answer is the truth in plain sight: the same text, or a finished number of the same value."""
    answer, truth = _plain(answer), _plain(truth)
    a, b = value(answer), value(truth)
    return answer.casefold() == truth.casefold() or (a is not None and a == b)


def is_number(text: str) -> bool:
    return value(_plain(text)) is not None


def _plain(text: str) -> str:
    text = re.sub(r"\\(?:left|right|displaystyle|[,;!: ])|[\s$~]|\\qquad|\\quad", "", text)
    text = re.sub(r"\\[dt]frac", r"\\frac", text).replace("−", "-").replace("\\div", "/")
    text = re.sub(r"\\frac(\d)(\d)", r"\\frac{\1}{\2}", text)
    text = re.sub(r"\\(?:text|mathrm|mbox)\{[^{}]*\}(?:\^\{?\d\}?)?$|\^\{?\\circ\}?$|\\?%$|\\\$", "", text)
    text = re.sub(r"^(?:[a-zA-Z\\{}()_]+(?:\([^()=]*\))?=)+(?=.)", "", text)
    return text.rstrip(".,;").replace("{,}", ",")


def value(text: str) -> Fraction | None:
    """Return the value of a finished number such as 1,234, -0.5, 1/2, 2\\frac{1}{3} or 3\\times10^{8}, else None."""
    text = text.strip("()") if re.fullmatch(r"\(-?[\d.]+\)", text) else text
    if re.fullmatch(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", text):
        text = text.replace(",", "")
    if re.fullmatch(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?", text):
        return Fraction(text)
    if found := re.fullmatch(r"([-+]?[\d.]+)(?:\\times|\\cdot)10\^\{?(-?\d{1,3})\}?", text):
        return Fraction(found[1]) * Fraction(10) ** int(found[2]) if found[1].count(".") < 2 else None
    if found := re.fullmatch(r"([-+]?)(\d*)\\frac\{(-?\d+)\}\{?(\d+)\}?", text) or re.fullmatch(
        r"([-+]?)()(\d+)/(\d+)", text
    ):
        part = Fraction(int(found[2] or 0)) + Fraction(int(found[3]), int(found[4])) if int(found[4]) else None
        return None if part is None else -part if found[1] == "-" else part
    return None
