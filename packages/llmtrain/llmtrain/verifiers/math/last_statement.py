"""Last formula or number that a text states, whole: never a piece of it.

So it is $\\frac{3}{4}$.                   \\frac{3}{4}
Hence x = 3, y = 4.                        x = 3, y = 4
She sold 48+24 = <<48+24=72>>72 clips.     72: the sum before it is how it was found
There are 5 values of $x$.                 5: a name alone is no answer if a number is there
"""

import re
from collections import deque

from .answer_words import operation_before, scale_after
from .brackets import closed_part, split
from .denial import is_denied_statement
from .formulas import formulas, inside
from .unit_beside import CURRENCIES, with_unit
from .word_number import number_before

MAX_NUMBER = 64
"""Upper limit for the characters of a number that is an answer."""
_REACH = 1500
"""Characters before and after the last number in which its formula is looked for."""
_NUMBER = re.compile(r"-?(?:\d*[¼-¾⅐-⅞]|\d+(?:,\d{3}(?!\d))*(?:\.\d+)?|\.\d+)(?:\s?/\s?\d+(?![\d.]))?%?")
_WRITTEN_AROUND = [
    (re.compile(r"<<[^<>\n]*>>"), ""),  # GSM8K's calculator
    (re.compile(r"\\(?:tag|label|ref|eqref|cite)\*?\s*\{[^{}]*\}"), ""),
    (re.compile(r"(?m)^[ \t]*[-*+•][ \t]+|</?[a-z]>|(?<![\d)])\*\*|\*\*(?![\d(])"), " "),
    (re.compile(r"[-=]+>|→|⇒"), " ; "),
    (re.compile(r"\bfrom (?=[-\d.,$%]+ to [$\d])[-\d.,$%]+ "), ""),
    (re.compile(r"(?<=[\d)])(\s?)[xX](?=\s?\$?(?:[\d(]|\.\d))"), r"\1*"),
    (re.compile(r"(?<=\d)\s?(?:mm|cm|dm|km|in|ft|yd|mi)\^(?:\{[23]\}|[23](?!\d))"), " "),
    (re.compile(r"\\\$"), "$"),
    (re.compile("÷|//"), "/"),
    (re.compile("–"), "-"),
]
"""Calculations and decoration in the text of a response, and signs for what they stand for."""
_RUN = re.compile(
    r"""(?:\\(?:text|mathrm|mathbf|textbf|mbox|operatorname|begin|end)\s*\{[^{}\n]*\}|\\[a-zA-Z]+|\\[^a-zA-Z\n()\[\]]
    |\d+(?:,\d{3}(?!\d))*(?:\.\d+)?[a-zA-Z]*|\.\d+|\.\.\.|\.(?=\(\d|\\overline|\\dot)
    |(?<=\d)\ ?:(?=\ ?\d)|(?<=\d)\ to\ (?=\d)
    |(?<![a-zA-Z'’])(?:sqrt|sin|cos|tan|cot|sec|csc|log|ln|exp|pi|infinity|and|or|ab|[xyz]{2,3}|[A-Z]{2,3}(?=\ ?[-+=])
     |(?<=[-+*/=]\ )[a-z]{2,3}(?=\ ?[-+*/^=_])|[a-zA-Z])
     (?![a-zA-Z'’])
    |[-+*/^=<>(){}\[\]|_!%°²³¼-¾⅐-⅞√π∞∪∩±×·≤≥≠≈−－∈ℝ∅…,;&~$'`]|[\ \t])+""",
    re.VERBOSE,
)
"""Numbers, letters and signs with no word between them; "and" and "or" join them."""
_AND = re.compile(r"(?<![a-zA-Z\\])(?:and|or)(?![a-zA-Z])")
_EQUALS = re.compile(r"(?<![<>!:])=(?![<>])")
_LEADING = re.compile(r"^(?:[\s=:*,;>|&`_)]|[+/]\s|(?:and|or)(?![a-zA-Z])|[a-zA-Z]\s+(?![-+*/^=<>≤≥≠≈∈\\]))+")
_TRAILING = re.compile(r"(?:[\s\-+*/=<>|:,;_~&({\[$!`≈]|(?<![a-zA-Z])(?:and|or)|\\)+$")
_SUM_BEFORE = re.compile(r"\b(?:of|times|by|plus|minus|from|per|twice|half|x)\s*$", re.IGNORECASE)
_ANOTHER = re.compile(r"\\\\|\\q?quad|\\[;: ]|[~&]|\\(?:land|wedge|lor|vee)(?![a-zA-Z])|(?:\d\s+|\\,\s*)[a-zA-Z]\s*$")
"""Sign that a side of an equation ends and another equation begins."""
_WORD_BEFORE, _GOES_ON = re.compile(r"[a-zA-Z]+$"), re.compile(r"\s*[+/]|[\^_]")
_WORD_AFTER, _GOES_ON_AFTER = re.compile(r"[a-zA-Z]+"), re.compile(r"[+*^]\s*$")
"""Words that are part of a sum, as in "3 + bs"."""
_ARTICLE = re.compile(r"\s[a-zA-Z]\s*$")
_NAMED = re.compile(r"\s*(?:\\?[a-zA-Z]+(?:_\{?\w+\}?)?'?(?:\([^()]*\))?|\([a-zA-Z](?:,\s*[a-zA-Z])+\))\s*")
"""One letter or name, f(x), or (x, y)."""
_WORK = re.compile(
    r"[)}\d]\s*(?:[-+*/^×·−]|\\(?:times|cdot|div)(?![a-zA-Z]))\s*[({$]*\s*[\d.\\]"
    r"|^\s*(?:[-+*/]|[xX]\s+[$.\d(])|%|\\text"
)
"""Sum that leads to a value, or the end of one that words begin, as in "5 apples * 3"."""
_SET_WORDS = re.compile(r"\\(?:text|mathrm|mbox)\s*\{[^{}]*\}")
_COMMAND, _UNIT = re.compile(r"\\[a-zA-Z]+"), re.compile(r"\d\s?([a-z]{1,3})\s*$")
_SAYS = re.compile(
    r"[\d=+*/^<>-]|\\(?:frac|d?t?frac|sqrt|pi|infty|emptyset|varnothing|log|ln|sin|cos|tan|exp|cdot|times|pm|cup|begin"
    r"|binom|mathbb|in|le|ge|leq|geq)(?![a-zA-Z])"
)
"""Signs of a formula that is more than a name."""
_IS = re.compile(r"(?:\b(?:is|are|get|gets|be|equals?|obtain|have|gives?|yields?)|[:=])\s*$")
_ROWS = re.compile(
    r"\s*\\begin\{(array|aligned|align\*?|split|gathered)\}(?:\{[lcr|\s]*\})?(?P<rows>.*)\\end\{\1\}\s*", re.DOTALL
)
_CONTINUED = re.compile(r"[,;]?\s*\\\\(?:\[[^\]]*\])?\s*&?\s*=\s*&?")
_JOINS = re.compile(r"[\s,;]*(?:(?:and|or)\s*)?")
_NUMBER_BEFORE = re.compile(r"(?<![a-zA-Z\d.])([-+]?\d[\d.,/]*)(?:\s*[,;]|\s+(?:and|or))\s+$")


_CUT = re.compile(r"(?<![-+/^=])[-+/^=]$|(?<!\\)\\$")
_OPENED, _CLOSED = re.compile(r"(?<!\\)\\[(\[]"), re.compile(r"\\[)\]]")


def is_broken_off(text: str) -> bool:
    """Return whether a text ends within a formula: an open brace or display, a sign that waits for more."""
    end = text.rstrip()
    line = end[-_REACH:].rpartition("\n\n")[2]
    decorated = any(end.endswith(mark) and line.count(mark) % 2 for mark in "*_")
    opened, closed = (sum(1 for _ in sign.finditer(line)) for sign in (_OPENED, _CLOSED))
    return decorated or bool(_CUT.search(end)) or line.count("{") > line.count("}") or opened > closed


def last_number(text: str) -> re.Match[str] | None:
    """Return the last number of a text, without keeping the others."""
    found = deque(_NUMBER.finditer(text), maxlen=1)
    return found[0] if found else None


def last_statement(text: str) -> str | None:
    """Return the last formula or number of a text, with all that belongs to it.

    None if there is none, a number has more than 64 characters, the sentence denies it, or the text is broken off.
    """
    number = last_number(text)
    if (number and len(number[0]) > MAX_NUMBER) or is_broken_off(text):
        return None
    middle = number.start() if number else len(text)
    near = text[max(0, middle - _REACH) : middle + _REACH]
    for old, new in _WRITTEN_AROUND:
        near = old.sub(new, near)
    number = last_number(near)
    found = list(formulas(near))
    if found and _is_last(found[-1], near, number):
        first, said = _joined_formulas(found, near)
        start, end = found[first].start(), found[-1].end()
    elif number:
        said, start = _around(number, near)
        end = number.end()
    else:
        return None
    if is_denied_statement(near, max(start, number.start()) if number else start, end):
        return None
    joined = number_before(near[:start])
    if joined is None:
        return None
    scale = scale_after(near[end:])
    scale = "" if scale.strip() and said.endswith(scale.strip()) else scale
    before = near[: start - len(joined)] if joined else near[:start]
    said = said + scale if scale else with_unit(said, _money(near[:start]), near[end:])
    return f"{operation_before(before)} {joined}{said}".strip() or None


def _money(text: str) -> str:
    """Return the sign of a currency at the end of a text, as LaTeX has it."""
    return "\\$" if text.endswith("$") else text[-1:] if text.endswith(CURRENCIES) else ""


def _is_last(formula: re.Match[str], text: str, number: re.Match[str] | None) -> bool:
    """Return whether a formula, rather than the last number, is what the text states last."""
    if number is None or formula.start() <= number.start() < formula.end():
        return True
    if number.start() > formula.end():
        return False
    return bool(_SAYS.search(inside(formula)) or _IS.search(text[: formula.start()]))


def _around(number: re.Match[str], text: str) -> tuple[str, int]:
    """Return the expression or list that a number outside formulas belongs to, and where it starts."""
    run = next((run for run in _RUN.finditer(text) if run.start() <= number.start() < run.end()), number)
    start, before, said = run.start(), text[: run.start()], run[0]
    if word := _WORD_AFTER.match(text, run.end()):
        said = said + word[0] if _GOES_ON_AFTER.search(said) else _ARTICLE.sub("", said)
    if _GOES_ON.match(said) and "=" not in said and (word := _WORD_BEFORE.search(before)):
        said, start = word[0] + said, word.start()
    incomplete = _SUM_BEFORE.search(before) is not None
    stated = _expression(said, number.start() - start, incomplete)
    return stated, max(start, text.rfind(stated.partition(",")[0], start, number.end()))


def _joined_formulas(found: list[re.Match[str]], text: str) -> tuple[int, str]:
    """Return the index of the first of the formulas that end the text as one list, and what they say."""
    first = len(found) - 1
    while (
        first and _JOINS.fullmatch(text, found[first - 1].end(), found[first].start()) and _is_answer(found[first - 1])
    ):
        first -= 1
    said = [_result(_in_a_row(inside(formula))) for formula in found[first:]]
    listed = _NUMBER_BEFORE.search(text[: found[first].start()])
    return first, ", ".join([*([listed[1]] if listed else []), *said])


def _in_a_row(formula: str) -> str:
    """Return a formula with rows that begin with an equals sign as one chain."""
    chain = _CONTINUED.sub(" = ", formula)
    rows = _ROWS.fullmatch(chain)
    return rows["rows"].replace("&", "").strip() if rows and "\\\\" not in rows["rows"] else chain


def _is_answer(formula: re.Match[str]) -> bool:
    sides = _sides(inside(formula))
    return len(sides) == 1 or _NAMED.fullmatch(sides[0]) is not None


def _sides(text: str) -> list[str]:
    return _EQUALS.split(text)


def _result(formula: str) -> str:
    """Return the last side of a chain such as A = ab = 12, or after a sum with units; other formulas whole."""
    sides = _sides(formula)
    if len(split(formula, ",;")) > 1 or "\\begin" in formula or _AND.search(formula) or len(sides) < 2:
        return formula
    return sides[-1] if _is_chain(sides) or ("\\text" in sides[-2] and _is_work(sides)) else formula


def _is_work(sides: list[str], incomplete: bool = False) -> bool:
    """Return whether the last side is what the sum of numbers before it comes to: 2x+3 in 2x+3 = 8 is none.

    A unit that both sides have is left out, as in 400 m + 500 m = 900 m.
    """
    side = _SET_WORDS.sub("\\\\text", sides[-2])
    if unit := _UNIT.search(sides[-1]):
        side = re.sub(rf"(?<=\d)\s?{unit[1]}(?![a-zA-Z])", "", side)
    if incomplete and _NAMED.fullmatch(side):
        return True
    letters = re.search(r"[a-zA-Z]", _COMMAND.sub("", side.strip().removeprefix("x ")))
    return not letters and (incomplete or not side.strip() or _WORK.search(side) is not None)


def _is_chain(sides: list[str]) -> bool:
    """Return whether the last of more than two sides is what the others come to, as in A = ab = 12."""
    before = sides[:-1]
    return len(before) > 1 and not any(_NUMBER.fullmatch(side.strip(" $")) or _ANOTHER.search(side) for side in before)


def _expression(run: str, at: int, incomplete: bool) -> str:
    """Return what a run of numbers, letters and signs says: the value after its last sum, or its last list.

    Args:
        run: Text without words.
        at: Index of its last number.
        incomplete: Whether the words before it are part of the sum that it begins with, as in "half of 50 = 25".
    """
    parts = split(_AND.sub(lambda joint: "," + " " * (len(joint[0]) - 1), _masked(closed_part(run, at))), ",;")
    taken: list[str] = []
    for index, part in reversed(list(enumerate(parts))):
        part = _TRAILING.sub("", part).replace("$", "")
        if not part.strip():
            continue
        sides = _sides(part)
        if len(sides) > 1 and (_is_work(sides, incomplete and index == 0) or _is_chain(sides)):
            if not taken:
                taken.append(sides[-1])
            break
        bare = _LEADING.sub("", part) if index == 0 or not part[:1].strip() else part
        alone = len(sides) == 1 and re.search(r"[\d\\√π∞]", bare)
        if taken and not (alone or (len(sides) > 1 and _NAMED.fullmatch(sides[0]))):
            break
        taken.append(bare)
    said = ",".join(reversed(taken)).replace("\0", ",")
    said = _TRAILING.sub("", _LEADING.sub("", said))
    number = last_number(said)
    said = closed_part(said, number.start()).strip() if number else said.strip()
    return said.strip("'") if said.startswith("'") else said


def _masked(run: str) -> str:
    """Return the run with its commas between thousands replaced, so that they separate nothing."""
    return re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "\0", run)
