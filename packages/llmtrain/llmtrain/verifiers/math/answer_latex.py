"""Rewrite answers to LaTeX that math-verify reads as they were meant; nothing is computed.

    readable("2 1/2")                     2\\frac{1}{2}
    readable("18 dollars per day")        18
    readable("E_{1}'+np.sin(2t)")         \\variable{Eprime_{1}}+\\sin (2t)

Each rule stands for a form in which benchmarks or models write answers and which math-verify's parser refuses or
misreads.
"""

import re
from collections.abc import Callable

from .answer_words import SPACING, STYLE, without_set_unit, without_unit

_GREEK = (
    "alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|vartheta|iota|kappa|lambda|mu|nu|xi|rho|sigma|tau|phi"
    "|varphi|chi|psi|omega|Gamma|Delta|Theta|Lambda|Xi|Sigma|Phi|Psi|Omega|hbar|ell"
)
_FUNCTIONS = "sin|cos|tan|cot|sec|csc|sinh|cosh|tanh|arcsin|arccos|arctan|ln|log|exp"
_SPELLED = f"{_FUNCTIONS}|pi|theta|alpha|gamma|delta|omega|sigma|lambda"
"""Names that stand for the command if no backslash is before them."""
_CHARACTERS = str.maketrans(
    {"−": "-", "–": "-", "×": "\\times ", "·": "\\cdot ", "±": "\\pm ", "²": "^2", "³": "^3", "′": "'", "’": "'"}
    | {"∞": "\\infty ", "∪": "\\cup ", "≤": "\\le ", "≥": "\\ge ", "∅": "\\emptyset ", "°": "^\\circ ", "√": "\\sqrt "}
    | {"π": "\\pi ", "θ": "\\theta ", "ω": "\\omega ", "α": "\\alpha ", "λ": "\\lambda "}
)
_DEGREE = r"(?:\^\s*(?:\\circ|\{\s*\\circ\s*\})|\\degree(?![a-zA-Z]))"
_INDEX = r"\s*_\s*(?:\{[^{}]*\}|\\[a-zA-Z]+|\w)"
_PRIMES = r"(?:'|\^\s*(?:\\prime|\{\s*\\prime\s*\}))+"


def _repeating(found: re.Match[str]) -> str:
    """Return a decimal whose last digits repeat as a fraction."""
    whole, first, again = found.groups()
    top = int(whole + first + again) - int(whole + first or "0")
    return f"\\frac{{{top}}}{{{'9' * len(again)}{'0' * len(first)}}}"


_RULES: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (re.compile(pattern), new)
    for pattern, new in (
        (rf"_\s*\{{?\s*{STYLE}\{{(\w+)\}}\s*\}}?", r"_{\1}"),
        (rf"{STYLE}\{{\s*({_FUNCTIONS})\s*\}}", r"\\\1 "),
        (rf"{STYLE}\{{\s*([a-zA-Z])\s*\}}", r" \1"),
        (rf"\\({_FUNCTIONS})\s*\{{([^{{}}]*)\}}", r"\\\1(\2)"),
        (r"(?<![a-zA-Z.])(?:np|math)\.", ""),
        (r"\\(omega|theta|pi|sin|cos|tan|cot|ln)([a-gi-zA-Z])(?![a-zA-Z])", r"\\\1 \2"),
        (rf"(?<![\\a-zA-Z_])({_SPELLED})(?![a-zA-Z])", r"\\\1 "),
        (r"\*\*", "^"),
        (r"\\?sqrt\s*(?:\(([^()]*)\)|(\w))", r"\\sqrt{\1\2}"),
        (r"\^\s*\(([^()]*)\)", r"^{\1}"),
        (r"\\lg(?![a-zA-Z])", r"\\log_{10}"),
        (r"\\varnothing(?![a-zA-Z])", r"\\emptyset "),
        (r"\^\s*(-\d+)", r"^{\1}"),
        (r"(?<=\d)\s*\\?%", ""),
        (r"(-?\d+) (\d+) ?/ ?(\d+)", r"\1\\frac{\2}{\3}"),
        (r"(?<![\d.])(\d*)\.(\d*)\\overline\s*\{(\d+)\}", _repeating),
        (rf"(\\(?:sin|cos|tan|cot|sec|csc)(?:\^\{{?\d\}}?)?)\s*[({{]?(\d+)\s*{_DEGREE}[)}}]?", r"\1(\2\\pi/180)"),
        (r"\\frac\s*(\\[a-zA-Z]+|\w)", r"\\frac{\1}"),
        (r"(\\frac\{[^{}]*\})\s*(\\[a-zA-Z]+|\w)", r"\1{\2}"),
    )
]
_SYMBOL = re.compile(
    rf"\\(?:variable|text|begin|end)\{{[^{{}}]*\}}"
    rf"|\\(?!(?:d?dot|{_GREEK})(?![a-zA-Z]))[a-zA-Z]+(?:{_INDEX})?"
    rf"|(?P<name>\\d?dot\{{\\?[a-zA-Z]+\}}|\\(?:{_GREEK})|[a-zA-Z])(?P<index>{_INDEX})?(?P<primes>{_PRIMES})?"
)


def _variable(found: re.Match[str]) -> str:
    """Return a letter with its index and primes as one variable, and i, I and gamma, which math-verify misreads."""
    name, index, primes = found.group("name", "index", "primes")
    if not name or (found[0] == "I" and found.string[found.end() : found.end() + 1] == "("):
        return found[0]
    count = name.count("dot") + name.count("ddot") + len(re.findall("'|prime", primes or ""))
    if not index and not count and name not in ("i", "I", "\\gamma", "\\Gamma"):
        return found[0]
    letter = re.sub(r"\\d?dot|[^a-zA-Z]", "", name)
    inner = re.sub("[^a-zA-Z0-9]", "", index or "")
    return f"\\variable{{{letter}{'prime' * count}{f'_{{{inner}}}' if inner else ''}}}"


def readable(answer: str, letters: bool = False) -> str:
    """Return a tidy answer in the LaTeX that math-verify reads, without its unit.

    Args:
        answer: Answer as answer_text.tidy returns it.
        letters: Whether a single letter after a number is a unit, as in 6m.
    """
    text = without_set_unit(SPACING.sub(" ", answer.translate(_CHARACTERS)))
    for pattern, new in _RULES:
        text = pattern.sub(new, text)
    text = without_unit(" ".join(text.split()), letters)
    return text if "\\sum" in text or "\\prod" in text else _SYMBOL.sub(_variable, text)
