"""Test cases of a program, as APPS and TACO publish them, as Python text that runs them.

    {"inputs": ["1 2\\n"], "outputs": ["3\\n"]}                       standard input and output of the whole program
    {"inputs": [[1, 2]], "outputs": [3], "fn_name": "add"}           calls of a function, or of Solution().add

Outputs on standard output are equal if their words are, numbers by value. A call returns the output or, as in APPS, its
only item; common modules are imported before a function, as the sites that ask for one do.
"""

import json
from typing import Any

IMPORTS = "".join(
    f"from {name} import *\nimport {name}\n"
    for name in ("typing", "collections", "heapq", "bisect", "math", "itertools", "functools", "string", "re")
)
"""Imports before a program whose function is called."""
STDIO = """
import decimal as _decimal
def _value(word):
    try:
        return _decimal.Decimal(word)
    except _decimal.InvalidOperation:
        return word
for _number, (_given, _wanted) in enumerate({cases!r}):
    _found = run_program(_given)
    _same = _found.split() == _wanted.split() or [*map(_value, _found.split())] == [*map(_value, _wanted.split())]
    assert _same, f"case {{_number}}: {{_found[:60]!r}}, not {{_wanted[:60]!r}}"
"""
CALLS = """
import json as _json
try:
    _call = of_answer({name!r})
except KeyError:
    _call = getattr(of_answer("Solution")(), {name!r})
for _number, (_given, _wanted) in enumerate(_json.loads({cases!r})):
    _found = _json.loads(_json.dumps(_call(*_given)))
    _first = _wanted[0] if isinstance(_wanted, list) and len(_wanted) == 1 else _wanted
    assert _found in (_wanted, _first), f"case {{_number}}: {{_found!r:.60}}, not {{_wanted!r:.60}}"
"""


def cases_of(ground_truth: Any) -> dict[str, Any] | None:
    """Return the cases of a ground truth, an object or its JSON text; None for another one."""
    if isinstance(ground_truth, str) and ground_truth.lstrip().startswith("{"):
        try:
            ground_truth = json.loads(ground_truth)
        except ValueError:
            return None
    return ground_truth if isinstance(ground_truth, dict) else None


def tests_of(cases: dict[str, Any]) -> str:
    """Return Python text that ends normally only if the program passes all cases: see answer_link.py for its names.

    Raises ValueError for cases without as many outputs as inputs, or with inputs of the wrong kind.
    """
    inputs, outputs, name = cases.get("inputs"), cases.get("outputs"), cases.get("fn_name")
    if not isinstance(inputs, list) or not isinstance(outputs, list) or not inputs or len(inputs) != len(outputs):
        raise ValueError(
            "the ground truth of python is its unit tests; an object has lists of as many outputs as inputs, not empty"
        )
    pairs = list(zip(inputs, outputs, strict=True))
    if name:
        if not all(isinstance(given, list) for given in inputs):
            raise ValueError(f"each of the inputs of fn_name {name!r:.60} is a list of arguments")
        return CALLS.format(name=name, cases=json.dumps(pairs))
    texts = [tuple("\n".join(map(str, x)) if isinstance(x, list) else x for x in pair) for pair in pairs]
    if not all(isinstance(x, str) for pair in texts for x in pair):
        raise ValueError("inputs and outputs of a program are texts, or lists of lines")
    return STDIO.format(cases=texts)
