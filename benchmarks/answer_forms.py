"""Ways to write the ground truths of benchmarks.

    list(same("\\frac{1}{2}"))     [("itself", "\\frac{1}{2}"), ..., ("fractions", "1/2"), ("decimals", "0.5"), ...]

They are made by rewriting text: no parser that is measured has a say in what is the same.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from math import isqrt

Form = tuple[str, str]
"""Kind and answer."""
Kinds = dict[str, Callable[[str], Iterable[str]]]
"""Functions that rewrite a ground truth, by kind."""

SCIENTIFIC = re.compile(r"(-?\d+(?:\.\d+)?)e(-?\d+)")
UNITS = (
    *("\\text{ cm}", "\\text{ cm}^2", "\\ \\text{cm}^{2}", "\\,\\mathrm{~km}", "\\text{ m/s}", "\\text{ square units}"),
    *(" \\text{ dollars}", "\\mathrm{cm}^3", "\\text{ sq. units}", "\\text{ hours per day}", "\\text{ m}"),
)
PLAIN_UNITS = ("^\\circ", "^{\\circ}", "°", " cm", " dollars", " units", " dollars per day")
_BROKEN = "omega|lambda|pi|sin|cos|cot"
"""Commands after which benchmarks have lost a space."""
_CHARACTERS = {
    **{"\\pi": "π", "\\omega": "ω", "\\infty": "∞", "\\cup": "∪", "\\cdot": "·", "\\pm": "±", "\\geqslant": "≥"},
}


# What a ground truth is -----------------------------------------------------------------------------------------------


def split(text: str, separators: str) -> list[str]:
    """Return the parts of `text` between separators outside all brackets, each with the sign before it."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if depth == 0 and char in separators and at > start:
            parts.append(text[start:at])
            start = at if char in "+-" else at + 1
    return [part.strip() for part in [*parts, text[start:]]]


def whole(text: str) -> int | None:
    """Return the value of a whole number, or None."""
    return int(text) if re.fullmatch(r"-?\d{1,30}", text) else None


def decimal(text: str) -> bool:
    """Return whether `text` is a decimal such as 0.5."""
    return re.fullmatch(r"-?\d+\.\d+", text) is not None


def constant(truth: str) -> bool:
    """Return whether `truth` is one number, such as 2\\sqrt{3} or \\frac{\\pi}{6}."""
    return re.fullmatch(r"[-+\d.{}() /^]*", re.sub(r"\\(?:frac|sqrt|pi|cdot)(?![a-z])", "", truth)) is not None


def scalar(truth: str) -> bool:
    """Return whether `truth` is one expression: no list, tuple, interval, equation, word, choice or matrix."""
    words = re.search(r"[a-zA-Z]{4}|^\([A-E]\)$", re.sub(r"\\[a-zA-Z]+", "", truth))
    return not words and not re.search(r"[,=<>$&%]|\\text|\\pm|\\begin|\\ge|\\angle|\\cup|\\infty", truth)


def members(truth: str) -> list[str]:
    """Return the members of a list such as 1,2 or (1,2),(3,4), or nothing if `truth` is none."""
    if re.search(r"=|where|\\quad|,\$|^\d{1,3}(?:,\d{3})+$", truth):
        return []
    parts = split(truth.replace("$", ""), ",")
    return parts if len(parts) > 1 else []


def components(truth: str) -> list[str]:
    """Return the components of one tuple or interval, or nothing."""
    one = truth[0] in "([" and truth[-1] in ")]" and len(split(truth, ",")) == 1 and "\\cup" not in truth
    parts = split(truth[1:-1], ",") if one else []
    return parts if len(parts) > 1 else []


def _exactly(value: Fraction) -> str | None:
    """Return a fraction as a decimal if that ends within eight places, or None."""
    shown = f"{float(value):.8f}".rstrip("0")
    return shown if Fraction(shown) == value and value.denominator > 1 and abs(value) < 10**6 else None


# The same answer ------------------------------------------------------------------------------------------------------


def _decorated(truth: str) -> Iterable[str]:
    yield from ([f"${truth}$", f"\\({truth}\\)"] if "$" not in truth else [])
    yield from (f"{truth}.", f"\\displaystyle {truth}")


def _spaced(truth: str) -> Iterable[str]:
    yield re.sub(r"(?<![a-zA-Z\d]) | (?![a-zA-Z])", "", truth)
    if not re.search("[a-zA-Z]{4}|e-|e[0-9]", re.sub(r"\\[a-zA-Z]+", "", truth)):
        yield re.sub(r"([+=]|(?<=[\w})])-)", r" \1 ", truth)
        yield truth.replace(",", ",\\ ").replace("+", "\\,+\\,") if not whole(truth.replace(",", "")) else truth


def _brackets(truth: str) -> Iterable[str]:
    if "(" in truth and "\\left" not in truth:
        yield truth.replace("(", "\\left(").replace(")", "\\right)")
        if "[" in truth and "\\sqrt[" not in truth:
            yield re.sub(r"[(\[]", r"\\left\g<0>", re.sub(r"[)\]]", r"\\right\g<0>", truth))


def _fractions(truth: str) -> Iterable[str]:
    if "\\frac{" in truth:
        yield from (truth.replace("\\frac", command) for command in ("\\dfrac", "\\tfrac", "\\cfrac"))
        yield re.sub(r"\\frac\{(\d|\\pi)\}\{(\d)\}", r"\\frac\1\2", truth)
        yield re.sub(r"(?<!\d)\\frac\{((?!d)[^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))", truth)
    if found := re.fullmatch(r"\\frac\{(-?\d+)\}\{(\d+)\}", truth):
        yield f"{found[1]}/{found[2]}"
        yield f"\\frac{{{2 * int(found[1])}}}{{{2 * int(found[2])}}}"
    if re.fullmatch(r"\\frac\{(?!-)[^{}]*\}\{[^{}]*\}", truth):
        yield truth.replace("\\frac{", "-\\frac{-(", 1).replace("}", ")}", 1)
    if (value := whole(truth)) is not None:
        yield f"\\frac{{{2 * value}}}{{2}}"


def _decimals(truth: str) -> Iterable[str]:
    if whole(truth) is not None:
        yield f"{truth}.0"
    elif found := re.fullmatch(r"(\d*)\\frac\{?(-?\d+)\}?\{?(\d+)\}?", truth):
        value = int(found[1] or 0) + Fraction(int(found[2]), int(found[3]))
        yield _exactly(value) or f"{float(value):.8g}"
        yield f"\\frac{{{value.numerator}}}{{{value.denominator}}}"
        if value > 1 and value.denominator > 1:
            rest = value - int(value)
            yield f"{int(value)}\\frac{{{rest.numerator}}}{{{rest.denominator}}}"
            yield f"{int(value)} {rest.numerator}/{rest.denominator}"
        if value.denominator == 3:
            yield f"{'-' * (value < 0)}{int(abs(value))}.\\overline{{{value.numerator % 3 * 3 if value > 0 else 3}}}"
    elif "frac" not in truth and not SCIENTIFIC.search(truth):
        yield re.sub(
            r"\d+\.\d+", lambda found: "\\frac{{{}}}{{{}}}".format(*Fraction(found[0]).as_integer_ratio()), truth
        )


def _units(truth: str) -> Iterable[str]:
    if constant(truth) or SCIENTIFIC.fullmatch(truth):
        yield from (truth + unit for unit in UNITS)
    if whole(truth) is not None or decimal(truth):
        yield from (truth + unit for unit in PLAIN_UNITS)
        yield f"\\${truth}"
    yield truth.replace("^{\\circ}", "")


def _percent(truth: str) -> Iterable[str]:
    if whole(truth) is not None or decimal(truth):
        yield from (truth + sign for sign in ("\\%", "%", " percent", "\\text{ percent}"))


def _words(truth: str) -> Iterable[str]:
    word = re.fullmatch(r"[a-zA-Z]{4,}", truth)
    if word or re.fullmatch(r"\([A-E]\)", truth):
        yield from (f"\\{style}{{{truth}}}" for style in ("text", "textbf", "mathrm"))
        yield truth.strip("()")
    if word:
        yield from (truth.lower(), truth.capitalize(), f"\\text{{{truth.lower()}}}")


def _thousands(truth: str) -> Iterable[str]:
    if (value := whole(truth)) is not None:
        yield from (f"{value:,}".replace(",", comma) for comma in (",", "{,}", "\\,"))


def _sets(truth: str) -> Iterable[str]:
    if parts := members(truth):
        back = parts[::-1]
        yield ", ".join(back)
        yield ",".join([*parts[1:], parts[0]])
        yield "\\{" + ", ".join(parts) + "\\}"
        yield "\\left\\{" + ",".join(back) + "\\right\\}"
        yield f"{', '.join(parts[:-1])} and {parts[-1]}"
        yield f"{', '.join(back[:-1])} \\text{{ and }} {back[-1]}"
        yield f"{', '.join(parts[:-1])}\\text{{ or }}{parts[-1]}"
        yield "$, $".join(parts)
        if all(map(constant, parts)):
            yield f"x={', '.join(parts)}"
            yield " \\text{ or } ".join(f"x={part}" for part in parts)
            yield ", ".join(f"x={part}" for part in parts)
            yield "x \\in \\{" + ", ".join(parts) + "\\}"


def _intervals(truth: str) -> Iterable[str]:
    if "\\infty" in truth or truth[0] == "[" or truth[-1] == "]":
        yield f"x\\in {truth.strip('$.')}"
        yield truth.replace("\\infty)", "+\\infty)")
        yield truth.replace("\\cup", " \\cup ")
    found = re.fullmatch(r"([\[(])([^,]+),([^,]+)([\])])", truth)
    if found and re.search(r"\\infty|\[|\]", truth):
        left, low, high, right = found.groups()
        less = {"(": "<", ")": "<", "[": "\\le", "]": "\\le"}
        if "\\infty" in low:
            yield f"x {less[right]} {high}"
        elif "\\infty" in high:
            yield f"{low} {less[left]} x"
        else:
            yield f"{low} {less[left]} x {less[right]} {high}"
    if found := re.fullmatch(r"([a-z]) \\geqslant (\d+)", truth):
        name, low = found.groups()
        yield from (f"{name} \\ge {low}", f"{low} \\le {name}", f"[{low},\\infty)", f"{name} \\in [{low}, \\infty)")


def _tuples(truth: str) -> Iterable[str]:
    parts = components(truth)
    if parts and truth[0] == "(" and truth[-1] == ")" and "\\infty" not in truth:
        yield f"( {' , '.join(parts)} )"
        yield f"\\left( {', '.join(parts)} \\right)"
        if len(parts) in (2, 3):
            yield f"{['(x, y)', '(x,y,z)'][len(parts) - 2]} = ({', '.join(parts)})"
        yield re.sub(
            r"\\frac\{(-?\d+)\}\{(\d+)\}", lambda m: _exactly(Fraction(int(m[1]), int(m[2]))) or str(m[0]), truth
        )


def _matrices(truth: str) -> Iterable[str]:
    if "pmatrix" in truth:
        yield truth.replace("pmatrix", "bmatrix")
        yield truth.replace("&", " & ").replace("\\\\", " \\\\ ")
        yield re.sub(r"(\d+)/(\d+)", r"\\frac{\1}{\2}", truth)
        yield truth.replace("\\begin{p", "\\left(\\begin{").replace("\\end{pmatrix}", "\\end{matrix}\\right)")


def _plus_minus(truth: str) -> Iterable[str]:
    if found := re.fullmatch(r"(\\\{)?(\d)\\pm(\d?\\sqrt\{\d+\})(.*)", truth):
        opening, first, second, rest = found[1] or "", found[2], found[3], found[4]
        yield f"{opening}{first}+{second},{first}-{second}{rest}"
        yield f"{opening}{first}-{second}, {first} + {second}{rest}"
        yield f"{opening}{first} \\pm {second}{rest}"
        if not opening:
            yield f"x={truth}"
            yield f"{first}+{second}\\text{{ and }}{first}-{second}"


def _equations(truth: str) -> Iterable[str]:
    if scalar(truth) and not re.search(r"x(?![a-z])", truth.replace("\\exp", "")):
        yield from (f"x={truth}", f"x = {truth}")
    sides = split(truth, "=")
    if len(sides) == 2 and not re.search(r"[$,]", truth):
        yield f"{sides[0]} = {sides[1]}"
        yield sides[1] if re.fullmatch(r"[a-zA-Z](\([a-z]\))?", sides[0]) else truth
        yield f"{sides[1]}={sides[0]}" if re.fullmatch(r"[a-zA-Z]", sides[0]) else truth


def _scientific(truth: str) -> Iterable[str]:
    if found := SCIENTIFIC.fullmatch(truth):
        digits, exponent = found[1], int(found[2])
        for times in ("\\times", "\\cdot", "\\times ", "\\,\\times\\,", "*", " × ", "\\ \\times\\ "):
            yield f"{digits}{times}10^{{{exponent}}}"
        yield f"{digits} \\times 10^{exponent}" if 0 <= exponent < 10 else truth
        yield f"{digits}\\times 10^{{{exponent}}}\\text{{ m}}"
        yield f"{digits}\\times 10^{{{exponent}}}\\ \\mathrm{{erg/s}}"
        yield f"{digits}E{exponent}"
        yield f"{digits}0e{exponent}" if "." in digits else f"{digits}.0e{exponent}"
        yield f"{float(digits) * 10:.9g}\\times 10^{{{exponent - 1}}}"
        if abs(exponent) < 9:
            value = Fraction(digits) * Fraction(10) ** exponent
            yield str(value.numerator) if value.denominator == 1 else f"{float(value):.12f}".rstrip("0")


def _powers(truth: str) -> Iterable[str]:
    yield re.sub(r"\^\{(\w)\}", r"^\1", truth)
    yield re.sub(r"\^(\w)", r"^{\1}", truth)
    yield re.sub(r"_\{(\w)\}", r"_\1", truth)
    yield re.sub(r"(?<![a-z])e\^\{([^{}]*)\}", r"\\exp(\1)", truth)
    yield truth.replace("e^{", "\\mathrm{e}^{")
    yield re.sub(r"\\exp\{([^{}]*)\}", r"e^{\1}", truth)
    yield re.sub(r"\\exp\{([^{}]*)\}", r"e^{\1}", truth).replace("*", "")


def _radicals(truth: str) -> Iterable[str]:
    if found := re.fullmatch(r"(\d+) ?\\sqrt\{(\d+)\}", truth):
        yield f"\\sqrt{{{int(found[1]) ** 2 * int(found[2])}}}"
        yield from (f"{found[1]} \\cdot \\sqrt{{{found[2]}}}", f"\\sqrt{{{found[2]}}} \\cdot {found[1]}")
        yield f"{found[1]}*sqrt({found[2]})"
    yield re.sub(r"\\sqrt\{(\d)\}", r"\\sqrt\1", truth)
    yield re.sub(r"(?<!\d)( ?)\\sqrt\{(\d+)\}", r"\1\2^{1/2}", truth)
    yield re.sub(r"\\sqrt\{(\d+)\}", lambda m: f"\\frac{{\\sqrt{{{4 * int(m[1])}}}}}{{2}}", truth)
    if found := re.fullmatch(r"\\frac\{\\sqrt\{(\d+)\}\}\{(\d+)\}", truth):
        top, bottom = int(found[1]), int(found[2])
        yield f"\\sqrt{{\\frac{{{top}}}{{{bottom**2}}}}}"
        yield f"\\frac{{{top}}}{{{bottom}\\sqrt{{{top}}}}}"
        yield from (f"\\frac{{1}}{{{bottom}}}\\sqrt{{{top}}}", f"\\sqrt{{{top}}}/{bottom}")
    value = whole(truth)
    if value is not None and 1 < value < 100:
        yield f"\\sqrt{{{value**2}}}"
        yield f"{isqrt(value)}^2" if isqrt(value) ** 2 == value else truth


def _order(truth: str) -> Iterable[str]:
    terms = split(truth, "+-")
    if scalar(truth) and len(terms) > 1 and not SCIENTIFIC.search(truth):
        signed = [term if term[0] in "+-" else f"+{term}" for term in terms]
        yield "".join(signed[::-1]).removeprefix("+")
        yield "".join([*signed[1:], signed[0]]).removeprefix("+")
        if not re.search(r"[({]", truth):
            yield "-(" + "".join(signed).translate(str.maketrans("+-", "-+")) + ")"
    if found := re.fullmatch(r"\(([^()]*)\)\(([^()]*)\)", truth):
        yield f"({found[2]})({found[1]})"
    if found := re.fullmatch(r"\\frac\{([^{}]+)\}\{(\d+)\}", truth):
        yield f"\\frac{{1}}{{{found[2]}}}({found[1]})"


def _unsimplified(truth: str) -> Iterable[str]:
    if scalar(truth) and not SCIENTIFIC.search(truth):
        yield f"\\frac{{2({truth})}}{{2}}"
        yield f"3({truth})-2({truth})"
    if found := re.fullmatch(r"\\frac\{(.*)\}\{\(?(\d)\+(\d)i\)?\}(.*)", truth):
        top, a, b, rest = found.groups()
        yield f"\\frac{{({top})({a}-{b}i)}}{{{int(a) ** 2 + int(b) ** 2}}}{rest}"


def _mended(truth: str) -> Iterable[str]:
    yield re.sub(rf"\\({_BROKEN})(?=[a-zA-Z])(?!h)", r"\\\1 ", truth)


def _names(truth: str) -> Iterable[str]:
    mended = next(iter(_mended(truth)))
    yield re.sub(r"\\(sin|cos|ln)", r"\\\1 ", mended)
    yield re.sub(r"\\(sin|cos|ln)\(", r"\1(", mended)
    yield re.sub(r"\\pi\b", " pi", mended)
    yield truth.replace("^{\\prime}", "'")
    if truth.startswith("np."):
        yield from ("\\arcsin(10/13)", "\\arcsin\\left(\\frac{10}{13}\\right)", "\\sin^{-1}(10/13)")
    if "\\left" not in truth:
        yield truth.replace("\\lfloor", "\\left\\lfloor").replace("\\rfloor", "\\right\\rfloor")


def _characters(truth: str) -> Iterable[str]:
    yield re.sub(
        "|".join(map(re.escape, _CHARACTERS)),
        lambda found: _CHARACTERS[found[0]],
        re.sub(r"\\sqrt\{(\d)\}", r"√\1", truth),
    )
    yield truth.replace("-", "−") if not re.search(r"e-|\\begin|\\text", truth) else truth


SAME: Kinds = {
    "itself": lambda truth: [truth],
    "dollar signs, full stops": _decorated,
    "spaces": _spaced,
    "`\\left`, `\\right`": _brackets,
    "fractions": _fractions,
    "decimals, mixed numbers": _decimals,
    "units, degrees": _units,
    "percent": _percent,
    "words, choices": _words,
    "thousands": _thousands,
    "sets, several answers": _sets,
    "intervals, inequalities": _intervals,
    "tuples": _tuples,
    "matrices": _matrices,
    "`\\pm`": _plus_minus,
    "equations": _equations,
    "scientific notation": _scientific,
    "powers": _powers,
    "radicals": _radicals,
    "order of terms": _order,
    "not simplified": _unsimplified,
    "spaces that the benchmark lost": _mended,
    "names of functions": _names,
    "other characters": _characters,
}
"""Rewritings that keep the answer."""


def same(truth: str) -> Iterator[Form]:
    """Return the forms of `truth`, each once."""
    return each(SAME, truth)


def each(kinds: Kinds, truth: str) -> Iterator[Form]:
    """Return what the functions of `kinds` make of `truth`, each text once."""
    seen = set()
    for kind, forms in kinds.items():
        for form in forms(truth):
            if form and form not in seen and (form != truth or kind == "itself"):
                seen.add(form)
                yield kind, form
