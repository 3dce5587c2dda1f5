"""Answers as trees: what an answer says, in LaTeX or plain notation.

    readings("\\frac{1}{2}x^2")     ((("*", ("/", 1, 2), ("^", x, 2)),), ())
    readings("\\{1, 2\\}")           ((("set", 1, 2),), ())
    readings("5 cm")                ((("*", ("*", 5, c), m),), (5,)): and perhaps 5, where that is a unit

An answer that may be read in two ways has two trees. What is not understood raises UnreadError, and is math-verify's.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from .answer_tokens import FUNCTIONS, GREEK, WORD, UnreadError, plain, tokenize

LONGEST = 400
"""Characters of an answer that is read."""

Tree = tuple[Any, ...]
"""(operation, operands), down to ("number", text), ("letter", name), ("pi",) and ("infinity", sign)."""
STRUCTURES = ("set", "tuple", "union", "matrix", "=", "inequality")
"""Operations whose trees have parts instead of a value."""

_ORDER = {"<": ">", "\\le": "\\ge", ">": "<", "\\ge": "\\le", "\\ne": "\\ne"}
"""Inequalities, and what they are from right to left."""
_ITEM_ENDS = {"", ",", ";", "=", "\\in", *_ORDER, "\\cup", ")", "]", "\\}"}
_PRODUCT_ENDS = _ITEM_ENDS | {"+", "-", "\\pm", "\\mp", "}", "\\rfloor", "\\rceil", "&", "\\\\", "\\end"}
_TIMES = {"*", "\\cdot", "\\times"}
_CLOSING = {"(": (")", "]"), "[": (")", "]"), "\\{": ("\\}",), "{": ("}",)}
_PAIRED = {"\\lfloor": ("floor", "\\rfloor"), "\\lceil": ("ceil", "\\rceil"), "|": ("abs", "|")}
_MATRICES = {"pmatrix", "bmatrix", "matrix"}
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_THOUSANDS_ONLY = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")
_UNIT = re.compile(r"(.*[\d)}\]!])\s*[a-zA-Z]+\.?", re.DOTALL)
_COUNTED = re.compile(r"(.*[\d)}\]])\s+([a-zA-Z]{4,}(?:\s+[a-zA-Z]+)*)\.?", re.DOTALL)
"""18 dollars per day: words of fewer letters may be products."""
_ARITHMETIC = re.compile(
    r"squared|cubed|factorial|hundred|thousand|million|billion|trillion|dozen|times|plus|minus|over"
)
_INDEX = re.compile(r"_\s*(?:\{[^{}]*\}|\w)")
_SIGNED_POWER = re.compile(r"(\d)[eE](?=-\d)")
_FUNCTION_NAMES = {"f", "g", "h", "F", "G", "H"}


@lru_cache(maxsize=4096)
def readings(answer: str) -> tuple[tuple[Tree, ...], tuple[Tree, ...]]:
    """What the answer says, in one or more ways, and what it might say besides.

    Raises:
        UnreadError: for an answer that is not understood.
    """
    if len(answer) > LONGEST:
        raise UnreadError
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
    if _THOUSANDS.search(text):
        ways = _tree(_THOUSANDS.sub("", text)), _tree(text)
        return (ways[:1], ways[1:]) if _THOUSANDS_ONLY.fullmatch(text) else (ways[1:], ways[:1])
    if _SIGNED_POWER.search(text):  # 2e-1 is 0.2 or 2e - 1
        return (_tree(text), _tree(_SIGNED_POWER.sub(r"\1 e ", text))), ()
    if (counted := _COUNTED.fullmatch(text)) and not _ARITHMETIC.search(counted[2]):
        return (_tree(counted[1]),), _all_of(text)
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
        return _Parser(tokenize(text)).answer()
    except UnreadError:
        if text.count("=") != 1 or "," in text:
            raise
    left, right = text.split("=")
    tree = _Parser(tokenize(right)).answer()
    if tree == ("inequality",):
        raise UnreadError
    names = (token for token in tokenize(_INDEX.sub("", left)) if token.isalpha() or token in GREEK)
    return "=", _unnamed(("letter", name) for name in names), tree


def parts(tree: Tree) -> tuple[Tree, ...]:
    """Of a tuple, set, union or matrix, or the right side of an equation."""
    return tree[2:] if tree[0] in ("tuple", "matrix", "=") else tree[1:]


def letters(tree: Tree) -> frozenset[str]:
    """Its variables without index, primes and case; d, e and i may be something else."""
    if tree[0] == "unnamed":
        return frozenset(tree[1:])
    inner = (letters(operand) for operand in tree[1:] if isinstance(operand, tuple))
    name = {tree[1].partition("_")[0].rstrip("'").lower()} if tree[0] in ("letter", "apply") else set()
    return frozenset(name - {"d", "e", "i"}).union(*inner)


def _unnamed(trees: Iterable[Tree]) -> Tree:
    """The left side of an equation that is not a variable or a function of one: its letters."""
    return "unnamed", *sorted(letters(("set", *trees)))


def with_signs(parts: list[Tree]) -> list[Tree]:
    """Each part, or, in the place of one with ±, that with plus and that with minus."""
    out = []
    for part in parts:
        count = repr(part).count("'±'")
        if count > 1 or (count and part[0] in ("tuple", "union", "matrix")):
            raise UnreadError
        out += [_signed(part, "+"), _signed(part, "-")] if count else [part]
    return out


def _signed(tree: Any, sign: str) -> Any:
    if not isinstance(tree, tuple):
        return tree
    return tuple(sign if operand == "±" else _signed(operand, sign) for operand in tree)


class _Parser:
    """Recursive descent. answer := part (, part)*; part := [name =] item (cup item)*; item := bracketed or sum;
    sum := product ([+-] product)*; product := power ([*/]? power)*; power := atom (^ exponent)?"""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = [*tokens, ""]
        self.at = 0
        self.bars = 0
        """Open |."""

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def take(self, *wanted: str) -> str:
        token = self.tokens[self.at]
        if not token or (wanted and token not in wanted):
            raise UnreadError
        self.at += 1
        return token

    def answer(self) -> Tree:
        parts = with_signs(self.parts())
        if self.peek():
            raise UnreadError
        return parts[0] if len(parts) == 1 else ("set", *parts)

    def parts(self) -> list[Tree]:
        """What stands between commas."""
        parts = [self.part()]
        while self.peek() in (",", ";"):
            self.take()
            parts.append(self.part())
        return parts

    def part(self) -> Tree:
        left = self.union()
        if self.peek() in _ORDER:
            return self.inequality(left)
        if self.peek() not in ("=", "\\in"):
            return left
        while self.peek() in ("=", "\\in"):
            self.take()
            right = self.union()
        named = all(name[0] == "letter" for name in ((left,), left[2:])[left[0] in ("apply", "tuple")])
        if not named and self.tokens.count("=") > 1:
            raise UnreadError
        return "=", left if named else _unnamed([left]), right

    def inequality(self, left: Tree) -> Tree:
        """Of a letter: the interval it is in. Others are not looked into."""
        terms, signs = [left], []
        while self.peek() in _ORDER:
            signs.append(self.take())
            terms.append(self.union())
        if signs[0] in (">", "\\ge"):
            terms, signs = terms[::-1], [_ORDER[sign] for sign in signs[::-1]]
        if len(terms) == 2 and terms[0][0] == "letter":
            terms, signs = [("infinity", "-"), *terms], ["<", *signs]
        elif len(terms) == 2:
            terms, signs = [*terms, ("infinity", "+")], [*signs, "<"]
        if len(terms) != 3 or terms[1][0] != "letter" or not {"<", "\\le"}.issuperset(signs):
            return ("inequality",)
        brackets = ("(" if signs[0] == "<" else "[") + (")" if signs[1] == "<" else "]")
        return "=", terms[1], ("tuple", brackets, terms[0], terms[2])

    def union(self) -> Tree:
        items = [self.item()]
        while self.peek() == "\\cup":
            self.take()
            items.append(self.item())
        return items[0] if len(items) == 1 else ("union", *items)

    def item(self) -> Tree:
        token = self.peek()
        if token in ("(", "[", "\\{"):
            end, several = self.closing()
            if self.tokens[end + 1] in _ITEM_ENDS and (several or token == "\\{"):
                self.take()
                parts = self.parts()
                close = self.take(*_CLOSING[token])
                return ("set", *with_signs(parts)) if token == "\\{" else ("tuple", token + close, *parts)
        for sign in (["\\infty"], ["+", "\\infty"], ["-", "\\infty"]):
            if self.tokens[self.at : self.at + len(sign)] == sign:
                self.at += len(sign)
                return "infinity", "-" if sign[0] == "-" else "+"
        if token == "\\begin":
            return self.matrix()
        return self.sum()

    def closing(self) -> tuple[int, bool]:
        """Where the bracket at hand closes, and whether a comma stands directly in it."""
        depth, several = 0, False
        for at in range(self.at, len(self.tokens) - 1):
            token = self.tokens[at]
            depth += (token in _CLOSING) - (token in (")", "]", "}", "\\}"))
            several |= depth == 1 and token == ","
            if depth == 0:
                return at, several
        raise UnreadError

    def matrix(self) -> Tree:
        kind = self.environment("\\begin")
        if kind not in _MATRICES:
            raise UnreadError
        rows = [[self.sum()]]
        while self.peek() != "\\end":
            if self.take("&", "\\\\") == "\\\\":
                rows.append([])
                if self.peek() == "\\end":
                    rows.pop()
                    break
            rows[-1].append(self.sum())
        if self.environment("\\end") != kind or len({len(row) for row in rows}) != 1:
            raise UnreadError
        return "matrix", len(rows), *(entry for row in rows for entry in row)

    def environment(self, command: str) -> str:
        self.take(command)
        self.take("{")
        name = ""
        while self.peek() != "}":
            name += self.take()
        self.take("}")
        return name

    def sum(self) -> Tree:
        sign = self.take() if self.peek() in ("+", "-", "\\pm") else "+"
        tree = self.product()
        tree = {"+": tree, "-": ("neg", tree)}.get(sign) or ("±", ("number", "0"), tree)
        while self.peek() in ("+", "-", "\\pm", "\\mp"):
            sign = self.take()
            other = ("neg", self.product()) if self.peek() == "-" and self.take() else self.product()
            tree = (sign if sign in "+-" else "±", tree, other)
        return tree

    def product(self) -> Tree:
        tree, divided = self.power(), False
        while not self.ends():
            operator = self.take() if self.peek() in _TIMES or self.peek() == "/" else ""
            if not operator and (divided or (self.peek()[0].isdigit() and self.tokens[self.at - 1] not in (")", "}"))):
                raise UnreadError  # 1/2x and 2 3 are read in two ways
            divided = operator == "/"
            tree = ("/" if divided else "*", tree, self.power())
        return tree

    def ends(self) -> bool:
        return self.peek() in _PRODUCT_ENDS or (self.peek() == "|" and self.bars > 0)

    def power(self) -> Tree:
        base = self.atom()
        while self.peek() == "!":
            self.take()
            if base[0] == "call" and base[1] == "factorial":
                raise UnreadError
            base = ("call", "factorial", base)
        if self.peek() != "^":
            return base
        exponent = self.exponent()
        if self.peek() in ("^", "_", "!"):
            raise UnreadError
        return ("call", "exp", exponent) if base == ("letter", "e") else ("^", base, exponent)

    def exponent(self) -> Tree:
        self.take("^")
        sign = self.take() if self.peek() == "-" else ""
        if not self.peek()[:1].isalnum() and self.peek() not in GREEK | {"{", "(", "\\pi", "\\frac"}:
            raise UnreadError
        if self.peek().isalpha():
            tree: Tree = ("letter", self.take())
        elif self.peek().isdigit():
            tree = ("number", self.take())
        else:
            tree = self.atom()
        return ("neg", tree) if sign else tree

    def atom(self) -> Tree:
        token = self.take()
        if token[0].isdigit() or token[0] == ".":
            return self.mixed(token)
        if token in ("(", "{", "["):
            tree = self.sum()
            self.take({"(": ")", "{": "}", "[": "]"}[token])
            return tree
        if token in _PAIRED:
            name, close = _PAIRED[token]
            self.bars += token == "|"
            tree = self.sum()
            self.take(close)
            self.bars -= token == "|"
            return "call", name, tree
        if token == "\\frac":
            if self.is_derivative():
                raise UnreadError
            return "/", self.argument(), self.argument()
        if token == "\\binom":
            return "call", "binomial", self.argument(), self.argument()
        if token == "\\sqrt":
            return self.root()
        if token == "\\pi":
            return ("pi",)
        if token in FUNCTIONS:
            return self.call(token)
        if token.isalpha() or token in GREEK or token in ("\\dot", "\\ddot"):
            return self.letter(token)
        raise UnreadError

    def mixed(self, token: str) -> Tree:
        """A number; a fraction of numbers that follows at once is added to it, as in 2\\frac{1}{3}."""
        number = ("number", token)
        if self.peek() == "_":  # 12_{5}: math-verify leaves the base out
            self.index()
        if not token.isdigit() or self.peek() != "\\frac":
            return number
        fraction = self.atom()
        if self.peek() in ("^", "!"):
            raise UnreadError
        return "+" if fraction[1][0] == fraction[2][0] == "number" else "*", number, fraction

    def is_derivative(self) -> bool:
        """Whether a fraction is like \\frac{dx}{dt}."""
        if self.peek() != "{" or self.peek(1) != "d":
            return False
        end, _ = self.closing()
        return self.tokens[end + 1 : end + 3] == ["{", "d"] and self.tokens[end + 3] != "}"

    def argument(self) -> Tree:
        """In braces, or the one digit or letter that stands there."""
        if self.peek() == "{":
            return self.atom()
        token = self.peek()
        if token.isdigit() and len(token) <= 2:
            if len(token) == 2:  # \frac12
                self.tokens[self.at] = token[1]
            else:
                self.take()
            return "number", token[0]
        if len(token) == 1 and token.isalpha():
            return "letter", self.take()
        if token == "\\pi":
            return (self.take()[1:],)
        raise UnreadError

    def root(self) -> Tree:
        if self.peek() == "(":
            return "call", "root", ("number", "2"), self.atom()
        if self.peek() != "[":
            if self.peek().isdigit() and len(self.peek()) > 1:
                raise UnreadError
            return "call", "root", ("number", "2"), self.argument()
        self.take("[")
        degree = self.sum()
        self.take("]")
        return "call", "root", degree, self.argument()

    def call(self, command: str) -> Tree:
        """A function with its base and power, of what stands in brackets, or of the factors that follow."""
        name = command[1:]
        extra: tuple[Tree, ...] = ()
        if name == "log" and self.peek() == "_":
            self.take()
            name, extra = "log of base", (self.argument(),)
        exponent = self.exponent() if self.peek() == "^" else None
        if exponent == ("neg", ("number", "1")):
            name, exponent = f"arc{name}", None
            if f"\\{name}" not in FUNCTIONS:
                raise UnreadError
        if exponent is not None and exponent[0] != "number":
            raise UnreadError
        tree: Tree = ("call", name, *extra, self.atom() if self.peek() in ("(", "{", "[", "|") else self.factors())
        if exponent is not None:
            return "^", tree, exponent
        return tree

    def factors(self) -> Tree:
        """What a function without brackets is of: \\sin 2\\pi x."""
        tree = self.power()
        while not self.ends() and self.peek() not in FUNCTIONS and self.peek() not in _TIMES:
            if self.peek() in ("/", "(", "[", "|") or self.peek()[0].isdigit():  # \ln x/2
                raise UnreadError
            tree = ("*", tree, self.power())
        return tree

    def letter(self, name: str) -> Tree:
        """A variable with its index and primes, or a function of it: f(x)."""
        primes = {"\\dot": "'", "\\ddot": "''"}.get(name, "")
        if primes:
            self.take("{")
            name = self.take()
            self.take("}")
        if self.peek() == "_":
            name += self.index()
        name += primes
        while self.peek() == "'":
            name += self.take()
        if self.peek() != "(" or name == "e":
            return "letter", name
        end, several = self.closing()
        if several:
            raise UnreadError
        if end == self.at + 2 or name in _FUNCTION_NAMES:
            self.take("(")
            argument = self.sum()
            self.take(")")
            return "apply", name, argument
        return "letter", name

    def index(self) -> str:
        self.take("_")
        token = self.take()
        if token != "{":
            if not token.isalnum() and token not in GREEK:
                raise UnreadError
            return f"_{token}"
        name = ""
        while self.peek() != "}":
            name += self.take()
        self.take("}")
        return f"_{name}"
