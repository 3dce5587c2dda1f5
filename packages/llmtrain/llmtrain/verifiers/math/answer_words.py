"""Words in answers: units and counted things, and words that change the number beside them."""

import re

_AFTER_A_NUMBER = "squared cubed factorial hundred thousand million billion trillion dozen over"
"""Words that change the number directly before them; in "5 feet squared" they belong to the unit."""
_ANYWHERE = (
    "or and not no nor neither either but except unless without if when whereas while rather instead actually maybe"
    " perhaps possibly probably versus vs plus minus negative half halves thirds fourths fifths sixths sevenths eighths"
    " ninths tenths hundredths thousandths zero one two three four five six seven eight nine ten eleven twelve thirteen"
    " fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety pi"
    " sqrt root am pm e i n x y z"
)
_UNIT_NAMES = "mm cm dm km in ft yd mi mg kg lb lbs oz ms min hr hrs mph kph ml mL mol Hz"
_UNIT_LETTERS = "m g s h l L J N W V A K C F"
"""Names of units of fewer than four letters; one letter may be a variable."""
STYLE = r"\\(?:text(?:bf|it|rm|normal)?|mbox|math(?:rm|bf|it)|operatorname)\s*"
"""Commands that set letters in another style."""
SPACING = re.compile(r"\\\$|\$|(?<!\\)\\[,;:! ]|~|\{\}|\\(?:q?quad|displaystyle|limits|[bB]igg?[lr]?)(?![a-zA-Z])")
WORD = re.compile(r"[a-zA-Z][a-zA-Z .'-]*[a-zA-Z]\.?")
_CHANGING = re.compile(
    rf"[\s(]*(?:{_AFTER_A_NUMBER.replace(' ', '|')})(?![a-zA-Z])"
    rf"|.*?(?<![a-zA-Z])(?:{_ANYWHERE.replace(' ', '|')}|[ap]\.m)(?![a-zA-Z])",
    re.IGNORECASE | re.DOTALL,
)
_NO_UNIT = re.compile(
    r"[^a-zA-Z0-9\s.'()/^°·$~-]|(?<![a-zA-Z^])(?<!\^-)\d|^[\s(]*(?:[-^]|/\s*(?![a-zA-Z]{2}))|\s-|-(?![a-zA-Z\d])"
)
"""Signs; digits that are no exponent; an exponent, or a divisor of one letter, of the number itself."""
_TEXT = r"\\(?:text(?:bf|it|rm|normal)?|mbox)\s*\{[^{}]*\}"
_LAST = r"(?<=[^\s{(=^_])\s*(?:(?:" + _TEXT + r"|\\mathrm\s*\{[^{}]%s\})(?:\^\s*(?:\{-?\d\}|\d))?\s*)+$"
_UNITS, _LAST_WORDS = re.compile(_LAST % "{2,}"), re.compile(_LAST % "+")
_WORDS = re.compile(STYLE + r"\{([^{}]*)\}")
_OR_OTHERS = re.compile(r"\(\s*(or\s[^()]*)\)")
_RATES = re.compile(
    r"(?:[ck]?m|ft|rad)/s(?:\^\{?2\}?)?|[km]?N/[cm]?m(?:\^\{?2\}?)?|k?g/c?m\^\{?3\}?|g/mol|k?J/mol|J/kg|V/m"
)
"""Units of one letter over another that are no formula."""
_COUNTED = re.compile(r"(.*[\d)}\]!])\s*(([a-zA-Z]++)[a-zA-Z\s./^\d-]*)", re.DOTALL)


def changes(words: str) -> bool:
    """Return whether words after a number make it another number, or more than one."""
    return _CHANGING.match(words) is not None


def is_unit(words: str) -> bool:
    """Return whether words after a number, such as " km/h" or " dollars per day", leave it as it is."""
    return _NO_UNIT.search(words) is None and not changes(words)


def spoken(answer: str) -> str:
    """Return the answer with the words set as text at its end as plain words, if they are more than a unit.

    "5 (or 6)" loses its brackets: math-verify would take one of the two.
    """
    text = _LAST_WORDS.sub(_unset, answer) if "\\text" in answer or "\\m" in answer else answer
    return _OR_OTHERS.sub(r"\1", text) if "or " in text else text


def _unset(found: re.Match[str]) -> str:
    if _WORDS.search(found[0]) and is_unit(SPACING.sub(" ", "".join(_WORDS.findall(found[0])))):
        return found[0]
    return _WORDS.sub(r" \1", found[0])


def split_set_unit(answer: str) -> tuple[str, str]:
    """Return the answer and the words set as text at its end, which `spoken` has left there as a unit; "" for none."""
    found = _UNITS.search(answer)
    return (answer[: found.start()], found[0]) if found else (answer, "")


def split_unit(answer: str, letters: bool) -> tuple[str, str]:
    """Return the answer and the plain words at its end that are a unit: of four letters, or with a known name.

    Args:
        answer: Answer without words set as text.
        letters: Whether one letter, as in 6m, is a unit.
    """
    found = _COUNTED.fullmatch(answer)
    if not found or not is_unit(found[2]):
        return answer, ""
    rate = answer[found.end(1)].isspace() and _RATES.fullmatch(found[2].strip())
    known = (
        rate or len(found[3]) > 3 or found[3] in _UNIT_NAMES.split() or (letters and found[3] in _UNIT_LETTERS.split())
    )
    return (found[1], found[2]) if known else (answer, "")
