"""Answers as tokens, with what only decorates them left out."""

import re

from .answer_words import is_unit


def _commands(names: str) -> frozenset[str]:
    return frozenset(f"\\{name}" for name in names.split())


GREEK = _commands(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau phi"
    " varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega hbar ell emptyset varnothing odot oplus"
)
"""Commands for single letters and symbols."""
FUNCTIONS = _commands("sin cos tan cot sec csc sinh cosh arcsin arccos arctan ln log lg exp")
_OTHERS = _commands(
    "frac binom sqrt pi infty cup in cdot times pm mp lfloor rfloor lceil rceil begin end dot ddot le ge ne to"
)
_BEFORE_LETTERS = sorted(GREEK | FUNCTIONS | {"\\pi"}, key=len, reverse=True)
_LIKE_THESE = _commands("tanh coth sech csch lnot lneq lneqq lgroup multimap pitchfork")
"""Commands that begin as others do."""
_TOKEN = re.compile(
    r"(?:\d+\.\d+|\d+|\.\d+)(?:[eE][+-]?\d{1,4}(?![\d.a-zA-Z]))?|\\[a-zA-Z]+|\\[{}\\]|[a-zA-Z]|[-+*/^_(){}\[\],;=<>|!'&]"
)
_CHARACTERS = str.maketrans(
    {"−": "-", "–": "-", "×": "\\times ", "·": "\\cdot ", "±": "\\pm ", "√": "\\sqrt ", "²": "^2", "³": "^3"}
    | {"π": "\\pi ", "θ": "\\theta ", "∞": "\\infty ", "∪": "\\cup ", "≤": "\\le ", "≥": "\\ge ", "°": ""}
    | {"′": "'", "’": "'", "∅": "\\varnothing "}
)
_TEXT = r"\\(?:text(?:bf|it|rm|normal)?|mbox)\s*"
STYLE = r"\\(?:text(?:bf|it|rm|normal)?|mbox|math(?:rm|bf|it)|operatorname)\s*"
_WHOLE_WORD = re.compile(STYLE + r"\{([^{}\\$]*[a-zA-Z][^{}\\$]*)\}")
_INDEX = re.compile(r"_\s*(?:" + STYLE + r"\{(\w+)\}|\{\s*" + STYLE + r"\{(\w+)\}\s*\})")
_STYLED = re.compile(STYLE + r"\{\s*([a-zA-Z]+)\s*\}")
_UNIT = r"(?<=[^\s{(=^_])\s*(?:(?:" + _TEXT + r"\{[^{}]*\}|\\mathrm\s*\{[^{}]%s\})(?:\^\s*(?:\{-?\d\}|\d))?\s*)+$"
_UNITS, _LAST_WORDS = re.compile(_UNIT % "{2,}"), re.compile(_UNIT % "+")
_WORDS = re.compile(STYLE + r"\{([^{}]*)\}")
_OR_OTHERS = re.compile(r"\(\s*(or\s[^()]*)\)")
_BETWEEN = re.compile(r",?\s*(?:" + STYLE + r"\{\s*,?\s*(?:and|or)\s*\}|(?<![a-zA-Z\\])(?:and|or)(?![a-zA-Z]))\s*")
_PERCENT = re.compile(STYLE + r"\{\s*percent\s*\}|(?<![a-zA-Z])percent(?![a-zA-Z])")
_LETTER = re.compile(r"\(([a-zA-Z])\)")
_DEGREE = r"(?:\^\s*(?:\\circ|\{\s*\\circ\s*\})|\\degree(?![a-zA-Z])|°)"
_DEGREES = re.compile(_DEGREE)
_OF_DEGREES = re.compile(
    r"(\\(?:sin|cos|tan|cot|sec|csc)(?![a-zA-Z])\s*(?:\^\s*(?:\d|\{\d\}))?\s*[({]?\s*-?)(\d+(?:\.\d+)?)\s*" + _DEGREE
)
_REPEATING = re.compile(r"(?<![\d.])(\d*)\.(\d*)\\overline\s*\{(\d+)\}")
_MIXED = re.compile(r"(-?\d+) (\d+) ?/ ?(\d+)")
_NOTHING = re.compile(r"\\\$|\$|(?<!\\)\\[,;:! ]|~|\{\}|\\(?:q?quad|displaystyle|limits|[bB]igg?[lr]?)(?![a-zA-Z])")
_NAMES = "|".join(["sqrt", "pi", *(name[1:] for name in FUNCTIONS), *(name[1:] for name in GREEK if len(name) > 4)])
_PLAIN_NAME = re.compile(rf"(?<![\\a-zA-Z_.])(?:np\.|math\.)?({_NAMES})(?![a-zA-Z])")
_RENAMED = (
    {"\\lbrace": "\\{", "\\rbrace": "\\}", "\\lvert": "|", "\\rvert": "|", "\\vert": "|", "\\cfrac": "\\frac"}
    | {"\\leq": "\\le", "\\leqslant": "\\le", "\\geq": "\\ge", "\\geqslant": "\\ge"}
    | {"\\neq": "\\ne", "\\lt": "<", "\\gt": ">", "\\emptyset": "\\varnothing"}
    | dict.fromkeys(_commands("to rightarrow longrightarrow Rightarrow Longrightarrow implies"), "\\to")
)
WORD = re.compile(r"[a-zA-Z][a-zA-Z .'-]*[a-zA-Z]\.?")


class UnreadError(Exception):
    """This is not read."""


def spoken(answer: str) -> str:
    """The answer with the words set as text at its end as plain words, where they are more than a unit.

    The others in "5 (or 6)" lose their brackets, for math-verify would take one of the two.
    """
    text = _LAST_WORDS.sub(_unset, answer) if "\\text" in answer or "\\m" in answer else answer
    return _OR_OTHERS.sub(r"\1", text) if "or " in text else text


def _unset(found: re.Match[str]) -> str:
    if _WORDS.search(found[0]) and is_unit(_NOTHING.sub(" ", "".join(_WORDS.findall(found[0])))):
        return found[0]
    return _WORDS.sub(r" \1", found[0])


def in_radians(answer: str) -> str:
    """The answer with what sines and the like are of in radians, where that is a number of degrees."""
    return _OF_DEGREES.sub(r"\1(\2\\pi/180)", answer) if _DEGREES.search(answer) else answer


def plain(answer: str) -> tuple[str, bool]:
    """The answer without units, degrees, spaces and styles, and whether it is a word set as text."""
    text = answer.translate(_CHARACTERS)
    text = _PERCENT.sub("%", _NOTHING.sub(" ", text)).strip()
    if found := _WHOLE_WORD.fullmatch(text):
        text = found[1].strip()
        if WORD.fullmatch(text):
            return text, True
    if found := _LETTER.fullmatch(text):
        return found[1], False
    text = _BETWEEN.sub(",", _INDEX.sub(lambda m: f"_{{{m[1] or m[2]}}}", text))
    text = _DEGREES.sub("", _UNITS.sub("", text))
    text = _REPEATING.sub(_fraction, text) if "\\overline" in text else text
    text = _STYLED.sub(_named, text)
    text = _PLAIN_NAME.sub(r"\\\1", text.replace("**", "^").replace("{,}", ""))
    text = re.sub(r"\^\s*(?:\{\s*\\prime\s*\}|\\prime(?![a-zA-Z]))", "'", text)
    text = " ".join(text.split())
    return (f"{found[1]}\\frac{{{found[2]}}}{{{found[3]}}}" if (found := _MIXED.fullmatch(text)) else text), False


def _fraction(found: re.Match[str]) -> str:
    """A decimal whose last digits repeat."""
    whole, first, again = found.groups()
    top = int(whole + first + again) - int(whole + first or "0")
    return f"(\\frac{{{top}}}{{{'9' * len(again)}{'0' * len(first)}}})"


def _named(found: re.Match[str]) -> str:
    """A styled letter is the letter, a styled name of a function the function."""
    name = found[1]
    if len(name) == 1:
        return f" {name}"
    if f"\\{name}" in FUNCTIONS:
        return f"\\{name} "
    raise UnreadError


def tokenize(text: str) -> list[str]:
    """Raises UnreadError for characters and commands that are not known."""
    tokens = [_RENAMED.get(token, token) for token in _TOKEN.findall(text)]
    if sum(map(len, _TOKEN.findall(text))) != len(re.sub(r"\s", "", text)):
        raise UnreadError
    return [part for token in tokens for part in (_split(token) if len(token) > 2 and token[0] == "\\" else [token])]


def _split(command: str) -> list[str]:
    """A command and the letters that follow it: public benchmarks have lost the spaces between, as in \\omegat."""
    if command in GREEK | FUNCTIONS | _OTHERS:
        return [command]
    known = next((name for name in _BEFORE_LETTERS if command.startswith(name)), None)
    if known is None or command in _LIKE_THESE:
        raise UnreadError
    return [known, *command[len(known) :]]
