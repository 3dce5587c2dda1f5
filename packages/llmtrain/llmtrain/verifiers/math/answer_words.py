"""Words in answers: those that units and what is counted are made of, and those that change what is beside them."""

import re

_AFTER_A_NUMBER = "squared cubed factorial hundred thousand million billion trillion dozen over"
"""They change the number that they follow at once; in "5 feet squared" they belong to the unit."""
_ANYWHERE = (
    "or and not no nor neither either but except unless without if when whereas while rather instead actually maybe"
    " perhaps possibly probably versus vs plus minus negative half halves thirds fourths fifths sixths sevenths eighths"
    " ninths tenths hundredths thousandths zero one two three four five six seven eight nine ten eleven twelve thirteen"
    " fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety pi"
    " sqrt root am pm e i n x y z"
)
_CHANGING = re.compile(
    rf"[\s(]*(?:{_AFTER_A_NUMBER.replace(' ', '|')})(?![a-zA-Z])"
    rf"|.*?(?<![a-zA-Z])(?:{_ANYWHERE.replace(' ', '|')}|[ap]\.m)(?![a-zA-Z])",
    re.IGNORECASE | re.DOTALL,
)
_NO_UNIT = re.compile(
    r"[^a-zA-Z0-9\s.'()/^°·$~-]|(?<![a-zA-Z^])(?<!\^-)\d|^[\s(]*(?:[-^]|/\s*(?![a-zA-Z]{2}))|\s-|-(?![a-zA-Z\d])"
)
"""Signs; digits that are no exponent; an exponent, or a divisor of one letter, of the number itself."""


def changes(words: str) -> bool:
    """Whether words after a number make it another one, or more than one."""
    return _CHANGING.match(words) is not None


def is_unit(words: str) -> bool:
    """Whether words after a number, such as " km/h" or " dollars per day", leave it as it is."""
    return _NO_UNIT.search(words) is None and not changes(words)
