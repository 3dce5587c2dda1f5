"""Words in answers: units and counted things, and words that change the number beside them."""

import re

NEGATION = (
    r"(?:not|never|no|none|nope|nor|neither|cannot|[a-z]+n['’]t"
    r"|(?:is|are|was|were|do|does|did|has|have|had|ca|wo|could|would|should|must|might|need|ai)nt)"
)
"""Pattern of words that negate, with and without apostrophe."""
THINGS = r"\s+(?:people|children|[a-z]*men|(?!(?:is|was|this|always)(?![a-z]))[a-z]+s)(?![a-z])"
"""Word in the plural."""
RETRACTION = (
    r"(?:wrong|false|fake|bogus|absurd|nonsens\w*|mistake|mistaken|erroneous|error|contradict\w*|extraneous|spurious"
    r"|doubtful|dubious|questionable|refuted|ruled out|retracted|disprove[dn]|oops|sorry|ignore|forget"
    r"|too (?:big|small|high|low|large|long|short)"
    r"|un(?:true|likely|known|sure|certain|clear|sound|proven|equal|(?:defin|solv|decid|determin|reason|accept|attain"
    r"|reach|obtain|found|support|justifi|verifi|confirm|satisf|work)\w*)"
    r"|in(?:correct|valid|accurate|exact|feasible|consistent|determinate|admissible|applicable|conclusive|complete)"
    r"|im(?:possible|proper|precise|probable|plausible)|il(?:legal|logical|legitimate))(?![a-zA-Z])"
    rf"(?!{THINGS})"
)
"""Pattern of words that take an answer back: "5 wrong", but not "5 wrong answers"."""
_MAGNITUDE = (
    r"(?:tens|hundreds?|thousands?|[a-z]*illions?|dozens?|score|gross|grand|myriads?|lakhs?|crores?|googols?|bn|mn|mil"
    r"|(?-i:k)|mega|giga|tera|peta|hecto|deca|deci|centi|milli|micro|nano|pico)"
)
_ORDINAL = (
    r"(?:third|quarter|(?:four|fif|six|seven|eigh|nin|ten|eleven|twelf|[a-z]*teen|[a-z]*tie|hundred|thousand"
    r"|[a-z]*illion)th)"
)
_MULTIPLIED = (
    r"(?:halv|doubl|trebl|tripl|(?:quadr|quint|sext|sept|oct|dec|cent)upl|negat|multipli|divid|subtract)(?:ed|ing)"
)
_AFTER_A_NUMBER = (
    rf"squared|cubed|factorials?|over|twice|thrice|ish|infinity|quarters|{_MAGNITUDE}"
    rf"|(?:times|by) (?:itself|(?:an? )?{_MAGNITUDE})|to the(?! nearest)|basis points?|bps"
    rf"|pp[mbt]|per ?mille?|parts per|per (?:hundred|{_MAGNITUDE})"
)
"""Words that change the number directly before them; in "5 feet squared" they belong to the unit."""
_ALONE = (
    rf"more|less|fewer|about|around|above|below|under|beyond|{_ORDINAL}|double|triple|quadruple|inverted|reversed"
    r"|wait|rejected|discarded|excluded|opposite|inverse|reciprocal|conjugate|complement|binary|octal|hex|hexadecimal"
)
"""Words that change a number if nothing else follows it: "5 more", but not "5 more apples"."""
APPROXIMATELY = r"(?:approximately|approx\.?|about|around|roughly|circa|ca\.)"
"""Pattern of words before a number that is rounded."""
_EXACT = (
    r"(?:dai|week|month|year|hour|night|quarter|ear|on|exact|precise|equal|even|final|simp|respective|correct|total"
    r"|fami|assemb|supp|rep|bul|f|butterf)ly"
)
"""Words in -ly that are no hedge."""
_ANYWHERE = (
    rf"{NEGATION}|or|and|either|but|except|unless|without|if|when|whereas|while|rather|instead|actually|maybe|perhaps"
    r"|possibly|probably|approx|approximately|roughly|nearly|almost|circa|somewhat|guess|presumably|allegedly"
    r"|supposedly|hopefully|at (?:the )?(?:least|most|best)|versus|vs|plus|minus|negative"
    rf"|half|halves|(?!quarter){_ORDINAL}s|{_MULTIPLIED}"
    r"|zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
    r"|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|pi|sqrt|root|am|pm|[ap]\.m|(?-i:[einxyzEIXYZ])"
)
"""Words that change a number or add another one, wherever they stand after it."""
_UNIT_NAMES = "mm cm dm km in ft yd mi mg kg lb lbs oz ms min hr hrs mph kph ml mL mol Hz"
_APART = (
    "day cup ton gal tsp tbsp sec sq cu per rpm bpm fps mpg psi atm bar cal kcal kPa MPa Pa kHz MHz GHz Wh kWh kJ MJ"
    " kW MW mA mV kV eV keV MeV GeV dB kB KB MB GB TB USD EUR GBP JPY CNY RMB INR CAD AUD CHF"
)
"""Names of units that would be products of letters if no space were before them."""
_UNIT_LETTERS = "m g s h l L J N W V A K C F"
"""Names of units of fewer than four letters; one letter may be a variable."""
STYLE = r"\\(?:text(?:bf|it|rm|normal)?|mbox|math(?:rm|bf|it)|operatorname)\s*"
"""Commands that set letters in another style."""
SPACING = re.compile(r"\\\$|\$|(?<!\\)\\[,;:! ]|~|\{\}|\\(?:q?quad|displaystyle|limits|[bB]igg?[lr]?)(?![a-zA-Z])")
WORD = re.compile(r"[a-zA-Z][a-zA-Z .'-]*[a-zA-Z]\.?")
_CHANGING = re.compile(
    rf"[\s(]*(?:{_AFTER_A_NUMBER})(?![a-zA-Z])|[\s(]*(?:{_ALONE})(?:\s+(?:than|of)(?![a-zA-Z])|[\s).]*$)"
    rf"|.*?(?<![a-zA-Z])(?:(?:{_ANYWHERE})(?![a-zA-Z])|{RETRACTION}"
    rf"|(?!{_EXACT}(?![a-z]))(?-i:[a-z]+ly)[\s).]*$)",
    re.IGNORECASE | re.DOTALL,
)
_BEFORE_A_NUMBER = re.compile(
    rf"(?:[≈~]|\\(?:approx|sim))\s*$|\b(?:{APPROXIMATELY}|nearly|almost)\s*$"
    r"|\b(?:roots?|squares?|cubes?|half|twice|thrice|double|triple|thirds?|quarters?|logarithm|sine|cosine|tangent"
    r"|factorial|reciprocal|inverse|negative|minus|plus)(?:\s+of)?\s*$",
    re.IGNORECASE,
)
_SCALE = re.compile(
    rf"[\s*]*(?:squared|cubed|factorial|{_MAGNITUDE}|and\s+(?:an?|one|two|three)\s+(?:half|third|quarter)s?)(?![a-zA-Z])",
    re.IGNORECASE,
)
"""Words directly before and after a number in a sentence that change it."""
_NO_UNIT = re.compile(
    r"[^a-zA-Z0-9\s.'()/^°·$~-]|(?<![a-zA-Z^])(?<!\^-)\d|^[\s(]*(?:[-^]|/\s*(?![a-zA-Z]{2}))|\s-|-(?![a-zA-Z\d])"
)
"""Signs; digits that are no exponent; an exponent, or a divisor of one letter, of the number itself."""
_TEXT = r"\\(?:text(?:bf|it|rm|normal)?|mbox)\s*\{[^{}]*\}"
_LAST = r"(?<=[^\s{(=^_])\s*(?:(?:" + _TEXT + r"|\\mathrm\s*\{%s\})(?:\^\s*(?:\{-?\d\}|\d))?\s*)+$"
_UNITS, _LAST_WORDS = re.compile(_LAST % "(?:[^{}]{2,}|[mgshlLJNWVAK])"), re.compile(_LAST % "[^{}]+")
_WORDS = re.compile(STYLE + r"\{([^{}]*)\}")
_OR_OTHERS = re.compile(r"\(\s*(or\s[^()]*)\)")
_RATES = re.compile(
    r"(?:[ck]?m|ft|rad)/s(?:\^\{?2\}?)?|[km]?N/[cm]?m(?:\^\{?2\}?)?|k?g/c?m\^\{?3\}?|g/mol|k?J/mol|J/kg|V/m"
)
"""Units of one letter over another that are no formula."""
_COUNTED = re.compile(r"(.*[\d)}\]!])\s*(([a-zA-Z]++)[a-zA-Z\s./^\d-]*)", re.DOTALL)
_IN_PLAIN = re.compile(r"(?<![\\a-zA-Z{])[a-zA-Z]{2,}|[a-zA-Z]['’][a-zA-Z]")
"""Word that is no command."""


def changes(words: str) -> bool:
    """Return whether words after a number make it another number, or more than one."""
    return _CHANGING.match(words) is not None


def operation_before(text: str) -> str:
    """Return the words at the end of a text that make the number after them another one, as in "square root of 5"."""
    found = _BEFORE_A_NUMBER.search(text)
    return found[0] if found else ""


def scale_after(text: str) -> str:
    """Return the words at the beginning of a text that make the number before them another one: "5 million"."""
    found = _SCALE.match(text)
    return found[0] if found else ""


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


def has_words(text: str) -> bool:
    """Return whether words stand in a formula, as in "0 wrong", which a parser takes for a product of letters."""
    return _IN_PLAIN.search(text) is not None


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
    apart = answer[found.end(1)].isspace()
    rate = apart and (_RATES.fullmatch(found[2].strip()) or found[3] in _APART.split())
    known = (
        rate or len(found[3]) > 3 or found[3] in _UNIT_NAMES.split() or (letters and found[3] in _UNIT_LETTERS.split())
    )
    return (found[1], found[2]) if known else (answer, "")
