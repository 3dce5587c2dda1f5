"""Countdown: reach a target from given numbers with + - * / and parentheses, every number used exactly once.

Problem((3, 5, 7), 22)  ->  prompt "3 5 7=22:"  ->  response "5*3+7"  ->  Verdict(correct=True, reason="correct")

Values are exact rationals throughout. The verifier has its own parser: no response is ever executed.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from .verdict import Verdict

ALPHABET = "0123456789+-*/()=: "
"""Characters of prompts and responses."""

MAX_RESPONSE_CHARS = 256
MAX_DEPTH = 32
_MAX_REJECTIONS = 20_000
_OPERATORS = "+-*/"
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2}

Expression = int | tuple[str, "Expression", "Expression"]
"""Number, or (operator, left, right)."""


@dataclass(frozen=True)
class Problem:
    """Task to write an expression over `numbers`, each used once, whose value is `target`."""

    numbers: tuple[int, ...]
    target: int

    @property
    def key(self) -> tuple[tuple[int, ...], int]:
        """Return the identity of the problem: the sorted multiset of numbers, and the target."""
        return tuple(sorted(self.numbers)), self.target


class _ParseError(Exception):
    """Error for a response that is not an expression with a value."""


# --- building expressions -------------------------------------------------------------------------------------------


def _apply(op: str, a: Fraction, b: Fraction) -> Fraction | None:
    """Return the value of `a op b`, or None for a division by zero."""
    if op == "+":
        return a + b
    if op == "-":
        return a - b
    if op == "*":
        return a * b
    return a / b if b else None


def _random_expression(numbers: Sequence[int], rng: random.Random) -> tuple[Fraction, Expression] | None:
    """Merge random pairs with random operators until one value is left; return None if that divides by zero."""
    items: list[tuple[Fraction, Expression]] = [(Fraction(x), x) for x in numbers]
    while len(items) > 1:
        a, ea = items.pop(rng.randrange(len(items)))
        b, eb = items.pop(rng.randrange(len(items)))
        op = rng.choice(_OPERATORS)
        value = _apply(op, a, b)
        if value is None:
            return None
        items.append((value, (op, ea, eb)))
    return items[0]


def _render(expression: Expression) -> str:
    """Return the expression as text with as few parentheses as keep its value."""
    if isinstance(expression, int):
        return str(expression)
    op, left, right = expression
    a, b = _render(left), _render(right)
    if not isinstance(left, int) and _PRECEDENCE[left[0]] < _PRECEDENCE[op]:
        a = f"({a})"
    if not isinstance(right, int):
        tight, loose = _PRECEDENCE[op], _PRECEDENCE[right[0]]
        if loose < tight or (loose == tight and op in "-/"):
            b = f"({b})"
    return f"{a}{op}{b}"


def _search(
    items: list[tuple[Fraction, Expression]], target: Fraction, rng: random.Random
) -> Iterator[tuple[Fraction, Expression]]:
    """Yield ways to reach `target` from `items` in random order, depth first; a + b and b + a count as one way."""
    if len(items) == 1:
        if items[0][0] == target:
            yield items[0]
        return
    n = len(items)
    moves = [(i, j, op) for i in range(n) for j in range(n) for op in _OPERATORS if i != j and (i < j or op in "-/")]
    rng.shuffle(moves)
    for i, j, op in moves:
        value = _apply(op, items[i][0], items[j][0])
        if value is None or (n == 2 and value != target):
            continue
        rest = [item for k, item in enumerate(items) if k not in (i, j)]
        yield from _search([*rest, (value, (op, items[i][1], items[j][1]))], target, rng)


# --- problems -------------------------------------------------------------------------------------------------------


def generate(
    n: int, seed: int, *, counts: Sequence[int] = (3,), max_number: int = 12, max_target: int = 100
) -> list[Problem]:
    """Return `n` different solvable problems, a function of the arguments only.

    Args:
        n: Number of problems.
        seed: Seed of the draw.
        counts: Possible counts of numbers in a problem; each problem draws one entry.
        max_number: Numbers are uniform on 1..max_number.
        max_target: Targets are whole numbers in 1..max_target.

    Raises:
        ValueError: for settings with no or too few problems.
    """
    if n < 0 or not counts or min(counts) < 2 or max_number < 1 or max_target < 1:
        raise ValueError(
            f"countdown needs n >= 0, counts of at least 2, max_number and max_target >= 1; got n={n}, "
            f"counts={tuple(counts)}, max_number={max_number}, max_target={max_target}"
        )
    rng = random.Random(f"countdown-{seed}")
    seen = set()
    problems: list[Problem] = []
    rejected = 0
    while len(problems) < n:
        numbers = tuple(rng.randint(1, max_number) for _ in range(rng.choice(counts)))
        found = _random_expression(numbers, rng)
        if found is not None and found[0].denominator == 1 and 1 <= found[0] <= max_target:
            problem = Problem(numbers, int(found[0]))
            if problem.key not in seen:
                seen.add(problem.key)
                problems.append(problem)
                rejected = 0
                continue
        rejected += 1
        if rejected > _MAX_REJECTIONS:
            raise ValueError(f"found only {len(problems)} of {n} countdown problems; raise max_number or max_target")
    return problems


def split(
    n_train: int, n_test: int, seed: int, *, counts: Sequence[int] = (3,), max_number: int = 12, max_target: int = 100
) -> tuple[list[Problem], list[Problem]]:
    """Return disjoint (train, test) problems, alike in distribution; arguments as in `generate`."""
    problems = generate(n_test + n_train, seed, counts=counts, max_number=max_number, max_target=max_target)
    # A draw without repeats finds problems with many solutions first: unshuffled, the first part would be easier.
    random.Random(f"countdown-split-{seed}").shuffle(problems)
    return problems[n_test:], problems[:n_test]


def prompt(problem: Problem) -> str:
    """Return the prompt text, such as "3 5 7=22:"."""
    return f"{' '.join(map(str, problem.numbers))}={problem.target}:"


def solve(problem: Problem, rng: random.Random) -> str:
    """Return a random correct expression.

    Raises:
        ValueError: if the problem has no solution.
    """
    items: list[tuple[Fraction, Expression]] = [(Fraction(x), x) for x in problem.numbers]
    for _, expression in _search(items, Fraction(problem.target), rng):
        return _render(expression)
    raise ValueError(f"no expression over {problem.numbers} has the value {problem.target}")


def wrong(problem: Problem, rng: random.Random) -> str:
    """Return a random expression that uses every number once and has another positive whole value than the target.

    Raises:
        ValueError: if none is found (a single number has none).
    """
    for _ in range(_MAX_REJECTIONS):
        found = _random_expression(problem.numbers, rng)
        # Targets are positive whole numbers, too: only the sum shows the mistake.
        if found is not None and found[0].denominator == 1 and 0 < found[0] != problem.target:
            return _render(found[1])
    raise ValueError(f"no wrong expression found for {problem}")


def examples(problems: Sequence[Problem], n: int, seed: int, *, wrong_share: float = 0.25) -> list[tuple[str, str]]:
    """Return `n` (prompt, response) pairs for supervised warm-up, cycling over `problems` in order.

    A share `wrong_share` of the responses is wrong on average, so that the warmed-up model has partial skill.
    """
    if not 0.0 <= wrong_share <= 1.0:
        raise ValueError(f"wrong_share must lie in [0, 1]; got {wrong_share}")
    if not problems:
        raise ValueError("examples needs at least one problem")
    rng = random.Random(f"countdown-examples-{seed}")
    pairs = []
    for i in range(n):
        problem = problems[i % len(problems)]
        answer = wrong if rng.random() < wrong_share else solve
        pairs.append((prompt(problem), answer(problem, rng)))
    return pairs


# --- verifier -------------------------------------------------------------------------------------------------------


class _Parser:
    """Parser of `sum := product (± product)*`, `product := atom (×÷ atom)*`, `atom := number | (sum)`."""

    def __init__(self, text: str):
        self.text = text
        self.at = 0
        self.numbers: list[int] = []

    def parse(self) -> Fraction:
        value = self._sum(0)
        if self._peek():
            raise _ParseError(f"unexpected {self._peek()!r} at {self.at}")
        return value

    def _peek(self) -> str:
        """Return the next character that is not a space, or "" at the end."""
        while self.text[self.at : self.at + 1] == " ":
            self.at += 1
        return self.text[self.at : self.at + 1]

    def _sum(self, depth: int) -> Fraction:
        value = self._product(depth)
        while (op := self._peek()) in ("+", "-"):
            self.at += 1
            other = self._product(depth)
            value = value + other if op == "+" else value - other
        return value

    def _product(self, depth: int) -> Fraction:
        value = self._atom(depth)
        while (op := self._peek()) in ("*", "/"):
            self.at += 1
            other = self._atom(depth)
            if op == "/" and not other:
                raise _ParseError("division by zero")
            value = value * other if op == "*" else value / other
        return value

    def _atom(self, depth: int) -> Fraction:
        char = self._peek()
        if char == "(":
            if depth >= MAX_DEPTH:
                raise _ParseError(f"parentheses nested deeper than {MAX_DEPTH}")
            self.at += 1
            value = self._sum(depth + 1)
            if self._peek() != ")":
                raise _ParseError("unbalanced parenthesis")
            self.at += 1
            return value
        start = self.at
        # str.isdigit accepts other scripts' digits; only these ten are in the language.
        while self.text[self.at : self.at + 1] in tuple("0123456789"):
            self.at += 1
        digits = self.text[start : self.at]
        if not digits:
            raise _ParseError(f"expected a number at {start}, found {repr(char) if char else 'the end'}")
        if digits[0] == "0" and len(digits) > 1:
            raise _ParseError(f"number {digits} has a leading zero")
        self.numbers.append(int(digits))
        return Fraction(self.numbers[-1])


def verify(problem: Problem, response: str) -> Verdict:
    """Return the verdict on a response; no text raises an error."""
    if len(response) > MAX_RESPONSE_CHARS:
        return Verdict(False, f"longer than {MAX_RESPONSE_CHARS} characters")
    if not response.strip(" "):
        return Verdict(False, "empty")
    parser = _Parser(response)
    try:
        value = parser.parse()
    except _ParseError as error:
        return Verdict(False, str(error))
    used, given = Counter(parser.numbers), Counter(problem.numbers)
    if extra := used - given:
        return Verdict(False, f"number {min(extra)} used more often than given")
    if unused := given - used:
        return Verdict(False, f"number {min(unused)} not used")
    if value != problem.target:
        return Verdict(False, f"value is {value}, not {problem.target}")
    return Verdict(True, "correct")
