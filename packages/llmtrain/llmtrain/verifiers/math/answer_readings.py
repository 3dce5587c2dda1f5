"""What answers say, in LaTeX or plain notation, as trees of answer_tree.

    readings("\\frac{1}{2}x^2")     ((("*", ("/", 1, 2), ("^", x, 2)),), ())
    readings("\\{1, 2\\}")           ((("set", 1, 2),), ())
    readings("5 cm")                ((("*", ("*", 5, c), m),), (5,)): and perhaps 5, where that is a unit

An answer that may be read in two ways has two trees. What is not understood raises UnreadError, and is math-verify's.
"""

import re
from functools import lru_cache

from .answer_parser import Parser
from .answer_tokens import GREEK, WORD, UnreadError, in_radians, plain, tokenize
from .answer_tree import STRUCTURES, Tree, unnamed
from .answer_words import changes

LONGEST = 400
"""Characters of an answer that is read."""
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_THOUSANDS_ONLY = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")
_UNIT = re.compile(r"(.*[\d)}\]!])\s*[a-zA-Z]+\.?", re.DOTALL)
_COUNTED = re.compile(r"(.*[\d)}\]])\s+([a-zA-Z]{4,}(?:\s+[a-zA-Z]+)*)\.?", re.DOTALL)
"""18 dollars per day: words of fewer letters may be products."""
_INDEX = re.compile(r"_\s*(?:\{[^{}]*\}|\w)")
_SIGNED_POWER = re.compile(r"(\d)[eE](?=-\d)")


@lru_cache(maxsize=4096)
def readings(answer: str) -> tuple[tuple[Tree, ...], tuple[Tree, ...]]:
    """What the answer says, in one or more ways, and what it might say besides.

    Raises:
        UnreadError: for an answer that is not understood.
    """
    if len(answer) > LONGEST:
        raise UnreadError
    if (radians := in_radians(answer)) != answer:
        trees, others = readings(radians)
        return trees, (*others, *_all_of(plain(answer)[0]))
    text, is_word = plain(answer)
    word = ("letter", f"word {text.lower().rstrip('.')}")
    if is_word:
        return (word,), ()
    if len(text) == 1 and text.isalpha():
        return (("letter", text),), (word,)
    if WORD.fullmatch(text):
        return (word,), _all_of(text)
    if text.endswith("%"):
        share = _tree(text[:-1].removesuffix("\\"))
        if share[0] in STRUCTURES:
            raise UnreadError
        return (share,), (("/", share, ("number", "100")),)
    if (counted := _COUNTED.fullmatch(text)) and not changes(counted[2]):
        trees, others = readings(counted[1])
        return trees, (*others, *_all_of(text))
    if _THOUSANDS.search(text):
        ways = _tree(_THOUSANDS.sub("", text)), _tree(text)
        return (ways[:1], ways[1:]) if _THOUSANDS_ONLY.fullmatch(text) else (ways[1:], ways[:1])
    if _SIGNED_POWER.search(text):  # 2e-1 is 0.2 or 2e - 1
        return (_tree(text), _tree(_SIGNED_POWER.sub(r"\1 e ", text))), ()
    unit = _UNIT.fullmatch(text)
    return (_tree(text),), _all_of(unit[1]) if unit else ()


def _all_of(text: str) -> tuple[Tree, ...]:
    """The tree of a second way to read, where it is one."""
    try:
        return (_tree(text),)
    except UnreadError:
        return ()


def _tree(text: str) -> Tree:
    try:
        return Parser(tokenize(text)).answer()
    except UnreadError:
        if text.count("=") != 1 or "," in text:
            raise
    left, right = text.split("=")
    tree = Parser(tokenize(right)).answer()
    if tree == ("inequality",):
        raise UnreadError
    names = (token for token in tokenize(_INDEX.sub("", left)) if token.isalpha() or token in GREEK)
    return "=", unnamed(("letter", name) for name in names), tree
