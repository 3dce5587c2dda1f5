"""Rules that rewrite a truth into another right form.

    list(RIGHT["slash for a fraction"]("\\frac{1}{2}", ""))     ["1/2", "(1)/(2)"]

A rule takes the truth and the text of its question. Right forms are final: a finished number stays one.
"""

import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction

from .answer_variant_parts import asks_for, decimal, interval, pair, parts, ratio, scientific, terms, whole


class Raw(str):
    """A whole response; other answers are put into a box."""


Rule = Callable[[str, str], Iterable[str]]


# Right forms ----------------------------------------------------------------------------------------------------------


def _dfrac(truth: str, question: str) -> Iterable[str]:
    if re.search(r"\\frac", truth):
        yield from (re.sub(r"\\frac", rf"\\{name}", truth) for name in ("dfrac", "tfrac"))


def _slash(truth: str, question: str) -> Iterable[str]:
    if "frac" in truth and (value := ratio(truth)) is not None:
        yield from (f"{value.numerator}/{value.denominator}", f"${value.numerator} / {value.denominator}$")


def _as_decimal(truth: str, question: str) -> Iterable[str]:
    if (value := ratio(truth)) is not None and 10**4 % value.denominator == 0:
        shown = f"{float(value):g}"
        yield from (shown, shown.replace("0.", ".", 1) if abs(value) < 1 else shown + "0")


def _single_character(truth: str, question: str) -> Iterable[str]:
    known = {"1/2": "½", "1/3": "⅓", "2/3": "⅔", "1/4": "¼", "3/4": "¾", "1/8": "⅛", "7/8": "⅞", "1/6": "⅙", "1/9": "⅑"}
    if (value := ratio(truth)) is not None and (sign := known.get(str(value))):
        yield sign


def _as_ratio(truth: str, question: str) -> Iterable[str]:
    if decimal(truth) and "pproximat" not in question and len(truth) < 6:
        value = Fraction(truth)
        yield from (f"\\frac{{{value.numerator}}}{{{value.denominator}}}", f"{value.numerator}/{value.denominator}")


def _mixed(truth: str, question: str) -> Iterable[str]:
    if (value := ratio(truth)) is not None and value > 1 and value.denominator > 1:
        above = value - value.numerator // value.denominator
        first = value.numerator // value.denominator
        yield from (f"{first}\\frac{{{above.numerator}}}{{{above.denominator}}}", f"{first} {above}")
        yield f"{first}\\,\\tfrac{{{above.numerator}}}{{{above.denominator}}}"


def _repeating(truth: str, question: str) -> Iterable[str]:
    if (value := ratio(truth)) is not None and value.denominator in (3, 9, 11) and 0 < value < 1:
        digits = f"{int(value * 99):02d}" if value.denominator == 11 else str(int(value * 9))
        yield from (f"0.\\overline{{{digits}}}", f"0.({digits})", f".\\overline{{{digits}}}")
        if len(digits) == 1:
            yield f"0.\\dot{{{digits}}}"


def _thousands(truth: str, question: str) -> Iterable[str]:
    if (value := whole(truth)) is not None and abs(value) >= 1000:
        shown = f"{value:,}"
        yield from (shown.replace(",", mark) for mark in (",", "{,}", "\\,", " ", ",\\!", "~"))


def _trailing_zero(truth: str, question: str) -> Iterable[str]:
    if (value := whole(truth)) is not None:
        yield from (f"{value}.0", f"{value}.00", f"{value}.")


def _counted(truth: str, question: str) -> Iterable[str]:
    if whole(truth) is not None and (found := re.search(r"[Hh]ow many ([a-z]{3,12}s)\b", question)):
        yield from (f"{truth} {found[1]}", f"{truth}\\text{{ {found[1]}}}", f"{truth} \\mathrm{{~{found[1]}}}")
        yield Raw(f"So the answer is {truth} {found[1]}.")
        yield Raw(f"So there are {truth} {found[1]} in total.\nAnswer: {truth} {found[1]} in total")


def _money(truth: str, question: str) -> Iterable[str]:
    asked = re.search(r"[Hh]ow (?:much|many)[^.?]* (?:dollars|money|cost|pay|earn|make|spen)", question)
    if whole(truth) is not None and asked and "$" in question and "\\" not in question:
        yield from (f"\\${truth}", f"{truth} dollars", f"\\$ {truth}.00", f"{truth}\\text{{ dollars}}")
        yield f"\\text{{\\${truth}}}"


def _markdown(truth: str, question: str) -> Iterable[str]:
    if whole(truth) is not None:
        yield from (Raw(f"The answer is **{truth}**."), Raw(f"**Answer:** {truth}"), Raw(f"Answer: **{truth}**"))
        yield from (Raw(f"#### {truth}"), Raw(f"**Final Answer:** ${truth}$"), Raw(f"The answer is: {truth}"))
        yield from (
            Raw(f"Answer: \\({truth}\\)"),
            Raw(f"The final answer is \\[{truth}\\]"),
            Raw(f"### Answer: `{truth}`"),
        )


def _boxes(truth: str, question: str) -> Iterable[str]:
    yield from (Raw(f"\\boxed{{{truth}}}. Therefore, \\boxed{{{truth}}}."), Raw(f"$\\boxed{{{truth}}}$"))
    yield from (Raw(f"\\[\\boxed{{{truth}}}\\]"), Raw(f"**\\boxed{{{truth}}}**"), Raw(f"$$\n\\boxed{{ {truth} }}.\n$$"))
    yield Raw(f"\\( \\boxed{{{truth}}} \\) is the answer to the 7 questions.")
    if re.fullmatch(r"\d", truth):
        yield from (Raw(f"$\\boxed {truth}$"), Raw(f"$\\boxed{truth}$"))


def _decoration(truth: str, question: str) -> Iterable[str]:
    if "$" not in truth:
        yield from (f"${truth}$", f"\\displaystyle {truth}", f"\\({truth}\\)", f"\\mathbf{{{truth}}}", f"{truth}.")
        yield from (f" \\, {truth} \\, ", f"{{{truth}}}", f"\\boldsymbol{{{truth}}}", f"\\boxed{{{truth}}}")
    if whole(truth) is not None:
        yield from (f"\\text{{{truth}}}", f"\\mathrm{{{truth}}}", f"\\textbf{{{truth}}}", f"**{truth}**")


def _minus(truth: str, question: str) -> Iterable[str]:
    if re.fullmatch(r"-[\d.]+", truth):
        yield from (truth.replace("-", sign) for sign in ("−", "–", "- ", "－", "{-}"))
        yield f"({truth})"


def _full_width(truth: str, question: str) -> Iterable[str]:
    if re.fullmatch(r"\d+", truth):
        yield truth.translate({ord("0") + k: ord("０") + k for k in range(10)})


def _named(truth: str, question: str) -> Iterable[str]:
    for letter in "xnyka":
        if (whole(truth) is not None or ratio(truth) is not None) and asks_for(question, letter):
            yield from (f"{letter}={truth}", f"{letter} = {truth}")


def _name_dropped(truth: str, question: str) -> Iterable[str]:
    if found := re.fullmatch(r"(?:[a-zA-Z]|f\([xnz]\)|N\(n\))\s*=([^=,$]+)", truth):
        yield from (truth.replace("=", " = "), f"${truth}$")
        if not re.search(r"\bform\b|equation of", question):
            yield found[1].strip()


def _intervals(truth: str, question: str) -> Iterable[str]:
    if not (found := interval(truth, question)):
        return
    left, a, b, right = found
    outer, inner = {"(": "]", "[": "["}[left], {")": "[", "]": "]"}[right]
    low, high = {"(": "<", "[": "\\le"}[left], {")": "<", "]": "\\leq"}[right]
    yield from (f"{outer}{a},{b}{inner}", f"{left}{a};{b}{right}", f"\\left{left}{a}, {b}\\right{right}")
    asked = re.search(r"values of \$(\\?[a-zA-Z]+)", question)
    x = asked[1] if asked else "y" if "range" in question else "x"
    yield from (f"{x} \\in {truth}", f"{x} \\in{outer}{a};{b}{inner}")
    if "interval notation" in question:
        return
    if "infty" in b:
        above = {"(": ">", "[": "\\ge"}[left]
        yield from (f"{x} {above} {a}", f"{a} {low} {x}", f"{left}{a},+\\infty{right}")
    elif "infty" in a:
        above = {")": ">", "]": "\\geq"}[right]
        yield from (f"{x} {high} {b}", f"{b} {above} {x}", f"(-\\infty , {b}{right}")
    else:
        yield from (
            f"{a} {low} {x} {high} {b}",
            f"\\{{{x} \\mid {a} {low} {x} {high} {b}\\}}",
            f"\\{{{x} : {a} {low} {x} {high} {b}\\}}",
        )


def _unions(truth: str, question: str) -> Iterable[str]:
    if "\\cup" not in truth or "{" in truth.replace("\\infty", ""):
        return
    opened = truth.replace(")", "\0").replace("(", "]").replace("\0", "[")
    yield from (opened, truth.replace("\\cup", " \\cup "), truth.replace("\\cup", "∪"), f"x \\in {truth}")
    yield "\\cup".join(truth.split("\\cup")[::-1])
    pieces = [re.fullmatch(r"\(([^,]+),([^,]+)\)", piece.strip()) for piece in truth.split("\\cup")]
    if all(pieces):
        read = [(piece[1], piece[2]) for piece in pieces if piece]
        said = [f"x<{b}" if "infty" in a else f"x>{a}" if "infty" in b else f"{a}<x<{b}" for a, b in read]
        yield from ("\\text{ or }".join(said), " or ".join(said))


def _sets(truth: str, question: str) -> Iterable[str]:
    members = parts(truth)
    if len(members) < 2 or len(set(members)) < len(members) or not re.search(r"\ball\b|possible", question):
        return
    turned = members[::-1]
    yield from (", ".join(turned), "\\{" + ",".join(turned) + "\\}", "\\left\\{" + ", ".join(members) + "\\right\\}")
    yield from (
        ", ".join(members[:-1]) + " \\text{ and } " + members[-1],
        ", ".join(members[:-1]) + " and " + members[-1],
    )
    yield from (
        "; ".join(members),
        "$" + "$, $".join(members) + "$",
        Raw(", ".join(f"\\boxed{{{m}}}" for m in members)),
    )
    if len(members) == 2 and not members[0].startswith("("):
        yield "\\text{ or }".join(turned)


def _plus_or_minus(truth: str, question: str) -> Iterable[str]:
    if truth.count("\\pm") == 1 and truth[1:2] != "{" and "," not in truth:
        both = [truth.replace("\\pm", sign) for sign in "+-"]
        yield from (
            ",".join(both),
            "\\{" + ", ".join(both[::-1]) + "\\}",
            " \\text{ and } ".join(both),
            truth.replace("\\pm", "±"),
        )
        yield from (f"x = {truth}", f"x={both[0]} \\text{{ or }} x={both[1]}")


def _degrees(truth: str, question: str) -> Iterable[str]:
    if found := re.fullmatch(r"([\d.]+)\^\{?\\circ\}?", truth):
        yield from (
            found[1],
            f"{found[1]}°",
            f"{found[1]}\\text{{ degrees}}",
            f"{found[1]}^\\circ",
            f"{found[1]} degrees",
        )
        yield from (f"{found[1]}^{{\\circ}}", f"{found[1]}\\degree")


def _pairs(truth: str, question: str) -> Iterable[str]:
    components = pair(truth)
    if not components or interval(truth, question):
        return
    yield from (
        f"\\left({', '.join(components)}\\right)",
        f"({'; '.join(components)})",
        f"( {' , '.join(components)} )",
    )
    if len(components) == 2 and re.search(r"\(x, ?y\)", question):
        yield from (f"x={components[0]}, y={components[1]}", f"x={components[0]} \\text{{ and }} y={components[1]}")
        yield from (f"(x,y)={truth}", f"\\begin{{cases}} x={components[0]} \\\\ y={components[1]} \\end{{cases}}")


def _matrices(truth: str, question: str) -> Iterable[str]:
    if found := re.fullmatch(r"\\begin\{pmatrix\}(.*)\\end\{pmatrix\}", truth):
        columns = "c" * (found[1].split("\\\\")[0].count("&") + 1)
        yield truth.replace("pmatrix", "bmatrix")
        yield f"\\left(\\begin{{array}}{{{columns}}}{found[1]}\\end{{array}}\\right)"
        yield f"\\left[\\begin{{array}}{{{columns}}} {found[1]} \\end{{array}}\\right]"
        yield truth.replace("\\\\", " \\\\ ")
        yield f"\\begin{{pmatrix}}{found[1]}\\\\\\end{{pmatrix}}"
        if re.search(r"\d/\d", truth):
            yield re.sub(r"(\d+)/(\d+)", r"\\frac{\1}{\2}", truth)


def _percent(truth: str, question: str) -> Iterable[str]:
    if found := re.fullmatch(r"([\d.]+)\s*\\?%", truth):
        yield from (
            f"{found[1]}\\%",
            f"{found[1]}%",
            f"{found[1]} \\text{{ percent}}",
            f"{found[1]} percent",
            f"{found[1]} \\%",
        )
    if "robabil" in question and (value := ratio(truth)) is not None and 100 % value.denominator == 0:
        yield from (f"{value * 100}\\%", f"{value * 100}%")


def _powers_of_ten(truth: str, question: str) -> Iterable[str]:
    if found := scientific(truth):
        digits, power = found
        yield from (f"{digits}\\times10^{{{power}}}", f"{digits} \\cdot 10^{{{power}}}", f"{digits}E{power}")
        yield from (f"{digits} × 10^{power}", f"{digits}\\times 10^{{{power}}}\\,", f"{digits} * 10^{power}")
        yield f"{digits}0 \\times 10^{{{power}}}" if "." in digits else f"{digits}.0 \\times 10^{{{power}}}"
        if -6 < power < 7:
            shown = f"{Decimal(digits).scaleb(power):f}"
            yield shown.rstrip("0").rstrip(".") if "." in shown else shown


def _radicals(truth: str, question: str) -> Iterable[str]:
    if found := re.fullmatch(r"(-?\d*)\s*\\sqrt\{(\d+)\}", truth):
        times, root = found[1], found[2]
        yield from (f"{times}√{root}", f"{times}\\sqrt {{{root}}}")
        if times not in ("", "-"):
            yield from (f"{times} \\cdot \\sqrt{{{root}}}", f"\\sqrt{{{root}}} \\cdot {times}", f"{times}*sqrt({root})")
            yield from (f"{times}\\times\\sqrt{{{root}}}", f"{times} \\cdot {root}^{{1/2}}")
    if found := re.fullmatch(r"\\frac\{(\d*)\\sqrt\{(\d+)\}\}\{(\d+)\}", truth):
        yield f"{found[1]}\\sqrt{{{found[2]}}}/{found[3]}"
        if len(found[2]) == 1:
            yield f"\\dfrac{{{found[1]}\\sqrt{found[2]}}}{{{found[3]}}}"
        yield f"\\frac{{{found[1] or 1}}}{{{found[3]}}}\\sqrt{{{found[2]}}}"


def _polynomials(truth: str, question: str) -> Iterable[str]:
    if found := terms(truth):
        turned = "".join(term if term[0] in "+-" else "+" + term for term in found[::-1]).removeprefix("+")
        yield from (turned, re.sub(r"(?<=[\w}])([+-])", r" \1 ", truth))
        yield re.sub(r"(\d)([a-z])", r"\1 \\cdot \2", truth)
        yield re.sub(r"(\d)([a-z])", r"\1\\,\2", truth)


def _products(truth: str, question: str) -> Iterable[str]:
    if found := re.fullmatch(r"(\d+)([a-zR](?:\^\{?\d\}?)?)", truth):
        yield from (f"{found[1]} \\cdot {found[2]}", f"{found[2]} \\cdot {found[1]}", f"{found[1]}\\,{found[2]}")
    if truth == "(a+5)(b+2)":
        yield from ("(b+2)(a+5)", "(5+a)(2+b)", "(a+5)\\cdot(b+2)", "(a + 5)(b + 2)")


def _pi(truth: str, question: str) -> Iterable[str]:
    if found := re.fullmatch(r"(\d+)\s*\\pi", truth):
        yield from (
            f"{found[1]}π",
            f"{found[1]} \\cdot \\pi",
            f"\\pi \\cdot {found[1]}",
            f"{found[1]}\\cdot\\pi",
            f"{found[1]}\\,\\pi",
        )
        yield f"{found[1]}\\pi \\text{{ square units}}" if "area" in question else f"{found[1]} pi"
    if found := re.fullmatch(r"(-?)\\frac\{(\d*)\s*\\pi\}\{(\d+)\}", truth):
        yield from (f"{found[1]}{found[2]}\\pi/{found[3]}", f"{found[1]}\\frac{{{found[2] or 1}}}{{{found[3]}}}\\pi")


def _choices(truth: str, question: str) -> Iterable[str]:
    if found := re.fullmatch(r"\(([A-E])\)", truth):
        yield from (
            found[1],
            f"\\text{{({found[1]})}}",
            f"\\text{{{found[1]}}}",
            f"\\textbf{{({found[1]})}}",
            f"{found[1]}.",
        )
        yield from (
            f"\\mathrm{{({found[1]})}}",
            f"option {found[1]}",
            f"\\text{{Option }}{found[1]}",
            Raw(f"Answer: {found[1]}"),
        )
        yield Raw(f"The answer is ({found[1]}).")


def _words(truth: str, question: str) -> Iterable[str]:
    if re.fullmatch(r"[A-Z]?[a-z]{3,}", truth):
        yield from (
            f"\\text{{{truth}}}",
            f"\\text{{{truth.capitalize()}}}",
            truth.upper(),
            f"\\mathrm{{{truth}}}",
            f"\\textbf{{{truth}}}",
        )
        yield Raw(f"The answer is **{truth}**.")


def _complex(truth: str, question: str) -> Iterable[str]:
    if found := re.fullmatch(r"(-?\d+)([+-]\d+)i", truth):
        yield from (
            f"{found[2]}i+{found[1]}".replace("+-", "-").removeprefix("+"),
            f"{found[1]} {found[2][0]} {found[2][1:]} i",
        )
        yield from (f"{found[1]}{found[2]}\\mathrm{{i}}", f"{found[1]}{found[2]}\\cdot i", f"z = {truth}")


def _bases(truth: str, question: str) -> Iterable[str]:
    if found := re.fullmatch(r"(\d+)_\{?(\d)\}?", truth):
        yield from (f"{found[1]}_{found[2]}", f"({found[1]})_{found[2]}", f"{found[1]}_{{{found[2]}}}")
        if found[2] == "5":
            yield f"{found[1]}_{{\\text{{five}}}}"


def _functions(truth: str, question: str) -> Iterable[str]:
    if found := re.fullmatch(r"f\((\w)\)\s*=\s*(\w+)\+(\d+)", truth):
        yield from (
            f"f({found[1]})={found[3]}+{found[2]}",
            f"f({found[1]}) = {found[2]} + {found[3]}",
            f"f(t)=t+{found[3]}",
        )


RIGHT: dict[str, Rule] = {
    "`\\dfrac`, `\\tfrac`": _dfrac,
    "slash for a fraction": _slash,
    "decimal for a fraction": _as_decimal,
    "one character for a fraction": _single_character,
    "fraction for a decimal": _as_ratio,
    "mixed number": _mixed,
    "repeating decimal": _repeating,
    "thousands": _thousands,
    "point and zeros": _trailing_zero,
    "counted things": _counted,
    "money": _money,
    "without a box": _markdown,
    "boxes": _boxes,
    "decoration": _decoration,
    "minus signs": _minus,
    "full-width digits": _full_width,
    "name in front": _named,
    "name dropped": _name_dropped,
    "interval": _intervals,
    "union": _unions,
    "set, list": _sets,
    "plus or minus": _plus_or_minus,
    "degrees": _degrees,
    "pair, point": _pairs,
    "matrix": _matrices,
    "percent": _percent,
    "power of ten": _powers_of_ten,
    "radical": _radicals,
    "polynomial": _polynomials,
    "product": _products,
    "pi": _pi,
    "choice": _choices,
    "word": _words,
    "complex number": _complex,
    "base": _bases,
    "function": _functions,
}
"""Rules that rewrite real truths into right answers."""
