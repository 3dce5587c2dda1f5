"""Rewrite answers to LaTeX that math-verify reads as they were meant; nothing is computed.

    readable("2 1/2")                     2\\frac{1}{2}
    readable("18 dollars per day")        18
    readable("E_{1}'+np.sin(2t)")         \\variable{Eprime_{1}}+\\sin (2t)

Each rule stands for a form in which benchmarks or models write answers and which math-verify's parser refuses or
misreads.
"""

import re
import unicodedata
from collections.abc import Callable
from fractions import Fraction

from .answer_words import SPACING, STYLE, split_set_unit, split_unit
from .units import conversion

_GREEK = (
    "alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|vartheta|iota|kappa|lambda|mu|nu|xi|rho|sigma|tau|phi"
    "|varphi|chi|psi|omega|Gamma|Delta|Theta|Lambda|Xi|Sigma|Phi|Psi|Omega|hbar|ell"
)
_FUNCTIONS = "sin|cos|tan|cot|sec|csc|sinh|cosh|tanh|arcsin|arccos|arctan|ln|log|exp"
_SPELLED = f"{_FUNCTIONS}|pi|theta|alpha|gamma|delta|omega|sigma|lambda"
"""Names that stand for the command if no backslash is before them."""
_ONE_CHARACTER = re.compile("[¼-¾⅐-⅞]")
"""Fractions of one character."""
_CHARACTERS = str.maketrans(
    {
        "−": "-",
        "–": "-",
        "－": "-",
        "＋": "+",
        "，": ",",
        "（": "(",
        "）": ")",
        "²": "^2",
        "³": "^3",
        "′": "'",
        "’": "'",
    }
    | {"×": "\\times ", "·": "\\cdot ", "±": "\\pm ", "∞": "\\infty ", "∪": "\\cup ", "≤": "\\le ", "≥": "\\ge "}
    | {"∅": "\\emptyset ", "°": "^\\circ ", "π": "\\pi ", "θ": "\\theta ", "ω": "\\omega ", "α": "\\alpha "}
    | {"λ": "\\lambda ", "≠": "\\neq ", "∈": "\\in "}
)
_SET_WORDS = re.compile(STYLE + r"\{([^{}]*)\}")
_TWO_UNITS = re.compile(r"\s*(\d[\d,]*)\s*([a-zA-Z]+)\.?\s*,?\s*(?:and\s+)?(\d+(?:\.\d+)?)\s*([a-zA-Z]+)\.?\s*")
_DEGREE = r"(?:\^\s*(?:\\circ|\{\s*\\circ\s*\})|\\degree(?![a-zA-Z]))"
_INDEX = r"\s*_\s*(?:\{[^{}]*\}|\\[a-zA-Z]+|\w)"
_PRIMES = r"(?:'|\^\s*(?:\\prime|\{\s*\\prime\s*\}))+"

_NOTHING = (
    r"(?i)^(?:\\(?:text|mathrm|mbox|textbf)\s*\{)?\s*(?:there\s+(?:are|is|exist)\s+)?(?:no\s+(?:(?:real|integer|positive|such)\s+)*"
    r"(?:solutions?|roots?|values?|numbers?|pairs?|triples?)(?:\s+exists?)?|none|(?:the\s+)?empty\s+set)\.?\s*\}?$"
)
"""Words for no solution at all."""
_ALL = r"(?i)^(?:\\text\s*\{)?\s*(?:all\s+(?:real\s+numbers|reals)|any\s+real\s+number)(?:\s+\w)?\s*\}?$"


def _repeating(found: re.Match[str]) -> str:
    """Return a decimal whose last digits repeat as a fraction."""
    whole, first, again = found.groups()
    top = int(whole + first + again) - int(whole + first or "0")
    return f"\\frac{{{top}}}{{{'9' * len(again)}{'0' * len(first)}}}"


def _fraction(found: re.Match[str]) -> str:
    """Return a fraction of one character, such as ¾."""
    value = Fraction(unicodedata.numeric(found[0])).limit_denominator(10)
    return f"\\frac{{{value.numerator}}}{{{value.denominator}}}"


def _interval(found: re.Match[str]) -> str:
    """Return an interval with ( and ) for the brackets that open outwards, as in ]0,1[."""
    left, low, high, right = found.groups()
    return f"{'(' if left == ']' else '['}{low},{high}{')' if right == '[' else ']'}"


def _equations(found: re.Match[str]) -> str:
    """Return the lines of a system as a list."""
    return re.sub(r"\\\\\s*", ", ", found[2].replace("&", "").strip().removesuffix("\\\\"))


def _matrix(found: re.Match[str]) -> str:
    """Return a list of rows, as in [[1,2],[3,4]], as a matrix."""
    rows = (row.replace(",", " & ") for row in re.findall(r"\[([^\[\]]*)\]", found[1]))
    return r"\begin{pmatrix}" + r" \\ ".join(rows) + r"\end{pmatrix}"


def _compound(answer: str) -> str:
    """Return a number of two units, as in "18 dollars and 50 cents", in the larger one; other answers as they are."""
    found = _TWO_UNITS.fullmatch(_SET_WORDS.sub(r" \1 ", answer)) if answer[:1].isdigit() else None
    share = conversion(found[4], found[2]) if found else None
    if not found or not share or share == 1 or Fraction(found[3]) * share >= 1:
        return answer
    value = int(found[1].replace(",", "")) + Fraction(found[3]) * share
    text = f"{float(value)}" if value * 10**6 % 1 == 0 else f"\\frac{{{value.numerator}}}{{{value.denominator}}}"
    return f"{text}\\text{{ {found[2]}}}"


_RULES: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (re.compile(pattern), new)
    for pattern, new in (
        (_NOTHING, r"\\emptyset "),
        (_ALL, r"(-\\infty,\\infty)"),
        (r"(?i)\\text\s*\{([^{}]*\binfinity)\s*\}", r"\1"),
        (r"(?i)(?:\b(?:negative|minus)|-)\s*infinity(?![a-z])", r"-\\infty "),
        (r"(?i)(?:\b(?:positive|plus)\s+)?(?<![a-z\\])infinity(?![a-z])", r"\\infty "),
        (r"(?:^|(?<=[(\[,{=]))\s*\+\s*(?=\\infty)", ""),
        (r"^-\s*\\infty\s*<\s*[a-zA-Z]\s*<\s*\+?\s*\\infty$", r"(-\\infty,\\infty)"),
        (r"^\[\s*(\[[^\[\]]*\](?:\s*,\s*\[[^\[\]]*\])*)\s*\]$", _matrix),
        (r"\\colon(?![a-zA-Z])", ":"),
        (r"(?<=\d)\s*(?:\\text\s*\{\s*to\s*\}|to)\s*(?=\d)", ":"),
        (r"\\(?:text)?color\s*\{[^{}]*\}|\\(?:large|Large|huge|small|therefore|rm|bf)(?![a-zA-Z])", ""),
        (r"\{([^{}]*)\\over(?![a-z])\s*([^{}]*)\}", r"\\frac{\1}{\2}"),
        (r"^([^{}]*)\\over(?![a-z])\s*([^{}]*)$", r"\\frac{\1}{\2}"),
        (r"(\d*\.\d*?)(\d)\2{2,}\s*(?:\\[lc]?dots(?![a-z])|\.\.\.|…)", r"\1\\overline{\2}"),
        (r"(?<=[.\d])\\bar\s*\{?(\d+)\}?", r"\\overline{\1}"),
        (r"\{\s*([-+])\s*\}", r"\1"),
        (r"√\s*(\d+|[a-zA-Z])", r"\\sqrt{\1}"),
        ("√", r"\\sqrt "),
        (r"\\begin\s*\{(cases|aligned|align\*?|gathered)\}(.*?)\\end\s*\{\1\}", _equations),
        (r"\\(?:langle|left\s*\\langle)(.*?)\\(?:rangle|right\s*\\rangle)", r"(\1)"),
        (r"([\]\[])([^\[\]();,]+)[,;]([^\[\]();,]+)(\[)", _interval),
        (r"(\])([^\[\]();,]+)[,;]([^\[\]();,]+)([\]\[])", _interval),
        (r"(?<=[\[(])([^\[\]();,]+);([^\[\]();,]+)(?=[\])])", r"\1,\2"),
        (r"\\\{\s*\\\}", r"\\emptyset "),
        (r"\\\{\s*(\\?[a-zA-Z]+)\s*(?:\\in\s*\\mathbb\s*\{?\s*R\s*\}?\s*)?(?:\\mid|\\colon|[|:])(.*)\\\}", r"\2"),
        (r"\\mathbb\s*R(?![a-zA-Z])|ℝ|\\R(?![a-zA-Z])|\\Re(?![a-zA-Z])", r"\\mathbb{R}"),
        (r"(?:\w\s*\\in\s*)?\\mathbb\{R\}\s*(?:-|\\backslash|\\smallsetminus|∖)\s*\\\{", r"\\mathbb{R}\\setminus\\{"),
        (r"(?:\w\s*\\in\s*)?\s*\\mathbb\{R\}\s*", lambda m: m[0] if m.string != m[0] else r"(-\infty,\infty)"),
        (r"\\degree(?![a-zA-Z])", r"^\\circ"),
        (r"(?<=[.\d])\\overline\s*(\d)", r"\\overline{\1}"),
        (r"\\dot\s*\{?(\d)\}?", r"\\overline{\1}"),
        (r"(\d*\.\d*)\((\d+)\)", r"\1\\overline{\2}"),
        (r"(\d+|\))!!", r"\1\\doublefactorial"),
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


_CURRENCY = r"US\$|[€£¥₹]|USD|EUR|GBP|JPY|CNY|RMB|INR|CAD|AUD|CHF|Rs\.?"
_MONEY = re.compile(
    rf"(?P<sign>[-−]?)\s*(?:{STYLE}\{{)?\s*(?P<before>{_CURRENCY}|US\\\$)\s*\}}?\s*(?:\\?\$)?\s*(?P<value>[\d.].*)"
    rf"|(?P<number>.*[\d}}])\s*(?:{STYLE}\{{)?\s*(?P<after>[€£¥₹¢])\s*\}}?",
    re.DOTALL,
)
"""Amount with the sign of its currency before or after it."""
_OHM = re.compile(r"(.*[\d}])\s*(?:\\(?:mathrm|text)\s*\{)?\s*([kMmμµ]?)\s*\}?\s*(?:[ΩΩ]|\\Omega)", re.DOTALL)
_ARC = re.compile(r"(-?\d+(?:\.\d+)?)\s*(''|'|″|\^\s*\{?\\prime(\\prime)?\}?)")
_UNIT_FRACTION = re.compile(
    rf"(?<=[\d}}])(?:\\[ ,;:]|[~\s])*\\[dt]?frac\s*\{{\s*(?:{STYLE}\{{)?\s*([a-zA-Z]+)\s*\}}?\s*\}}"
    rf"\s*\{{\s*(?:{STYLE}\{{)?\s*([a-zA-Z]+(?:\^\d)?)\s*\}}?\s*\}}$"
)
_NEXT_TO = re.compile(r"(=[^=,]*?)\s*\\q?quad\s*(?=[^=]*=)")
"""Space between two equations."""
_TRAILING_DEGREE = re.compile(rf"(.*[\d)}}])\s*{_DEGREE}\s*([CF])?", re.DOTALL)
_SCALES = {"C": "celsius", "F": "fahrenheit", None: "degree"}


def measured(answer: str, letters: bool = False) -> tuple[str, str]:
    """Return a tidy answer in the LaTeX that math-verify reads, and its unit as written; "" for none.

    Args:
        answer: Answer as answer_text.tidy returns it.
        letters: Whether a single letter after a number is a unit, as in 6m.
    """
    currency = "$" if answer.startswith("\\$") else ""
    if money := _MONEY.fullmatch(answer):
        currency = (money["before"] or money["after"]).replace("US", "" if "$" in money[0] else "US").replace("\\", "")
        answer = f"{money['sign']}{money['value']}" if money["before"] else money["number"]
    text = _ONE_CHARACTER.sub(_fraction, _compound(answer)).translate(_CHARACTERS)
    if letters:
        text = _UNIT_FRACTION.sub(r"\\text{\1/\2}", text)
        text = _OHM.sub(r"\1\\text{ \2ohm}", SPACING.sub(" ", text)) if text.endswith(("Ω", "Ω", "\\Omega")) else text
    text, unit = split_set_unit(SPACING.sub(" ", _NEXT_TO.sub(r"\1, ", text)))
    for pattern, new in _RULES:
        text = pattern.sub(new, text)
    text, plain = split_unit(" ".join(text.split()), letters)
    unit = unit or plain
    unit = f"{currency} {unit}" if unit.strip().startswith("per ") else unit or currency
    if found := _TRAILING_DEGREE.fullmatch(text):
        scale = _SCALES.get(found[2] or re.sub(r"\\[a-z]+|[^CF]", "", unit) or None, "degree")
        text, unit = found[1], scale if scale != "degree" else unit or scale
    elif found := _ARC.fullmatch(text):
        text, unit = found[1], unit or ("arcsec" if found[2] in ("''", "″") or found[3] else "arcmin")
    return text, unit


def symbols(text: str) -> str:
    """Return readable LaTeX in which each letter with its index and primes is one variable."""
    return text if "\\sum" in text or "\\prod" in text else _SYMBOL.sub(_variable, text)


def readable(answer: str, letters: bool = False) -> str:
    """Return a tidy answer in the LaTeX that math-verify reads, without its unit; see `measured`."""
    return symbols(measured(answer, letters)[0])
