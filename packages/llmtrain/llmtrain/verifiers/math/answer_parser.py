"""The grammar of answers: tokens to a tree, by recursive descent."""

from .answer_tokens import FUNCTIONS, GREEK, UnreadError
from .answer_tree import STRUCTURES, Tree, unnamed, with_signs
from .answer_value import LOGS, Number, Values, has_letters

_ORDER = {"<": ">", "\\le": "\\ge", ">": "<", "\\ge": "\\le", "\\ne": "\\ne"}
"""Inequalities, and what they are from right to left."""
_EQUAL = ("=", "\\in", "\\to")
_ITEM_ENDS = {"", ",", ";", *_EQUAL, *_ORDER, "\\cup", ")", "]", "\\}"}
_PRODUCT_ENDS = _ITEM_ENDS | {"+", "-", "\\pm", "\\mp", "}", "\\rfloor", "\\rceil", "&", "\\\\", "\\end"}
_TIMES = {"*", "\\cdot", "\\times"}
_CLOSING = {"(": (")", "]"), "[": (")", "]"), "\\{": ("\\}",), "{": ("}",)}
_PAIRED = {"\\lfloor": ("floor", "\\rfloor"), "\\lceil": ("ceil", "\\rceil"), "|": ("abs", "|")}
_MATRICES = {"pmatrix", "bmatrix", "matrix"}
_FUNCTION_NAMES = {"f", "g", "h", "F", "G", "H"}
_ROUNDED, _EXACT = 1e-2, 1e-9
"""The shares by which sides of an equation may differ, with a decimal among them and without."""


class Parser:
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
        if self.peek() in _ORDER:  # of something that has no name
            self.take()
            self.union()
            return ("inequality",)
        terms = [left := self.union()]
        if self.peek() in _ORDER:
            return self.inequality(left)
        if self.peek() not in _EQUAL:
            return left
        while self.peek() in _EQUAL:
            self.take()
            terms.append(right := self.union())
        if _contradict(terms):
            return ("inequality",)
        if "\\to" in self.tokens:  # of variables it may say more than that they are equal
            raise UnreadError
        named = all(name[0] == "letter" for name in ((left,), left[2:])[left[0] in ("apply", "tuple")])
        if not named and self.tokens.count("=") > 1:
            raise UnreadError
        return "=", left if named else unnamed([left]), right

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
        end, _ = self.closing()
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


def _contradict(terms: list[Tree]) -> bool:
    """Whether numbers that are said to be equal, as in 4 = 5, are not."""
    numbers = [term for term in terms if term[0] not in (*STRUCTURES, "infinity") and not has_letters(term)]
    if len(numbers) < 2 or "'±'" in repr(numbers):
        return False
    share = _ROUNDED if "." in repr(numbers) else _EXACT
    try:
        return all(_far_from_last([Values(log=log)(number) for number in numbers], share) for log in LOGS)
    except (UnreadError, ArithmeticError, ValueError):
        return False


def _far_from_last(values: list[Number], share: float) -> bool:
    return any(abs(value - values[-1]) > share * max(abs(value), abs(values[-1])) for value in values)
