"""Test cases of a program, in the forms in which data sets publish them, as Python text that runs them.

    {"inputs": ["1 2\\n"], "outputs": ["3\\n"]}                       standard input and output of the whole program
    {"inputs": [[1, 2]], "outputs": [3], "fn_name": "add"}           calls of a function, or of Solution().add
    [{"input": "1 2", "output": "3"}]                                a list of cases
    {"test_cases": ...}                                              any of these
    [{"input": "1\\n2", "output": "3", "fn_name": "add"}]             text for a call: its arguments as JSON, one a line

Each may also be text: JSON, or a Python literal. same_output.py compares outputs. A call returns the output or, as in
APPS, its only item; common modules are imported before a function, as the sites that ask for one do.
"""

import ast
import json
import re
import warnings
from pathlib import Path
from typing import Any

IMPORTS = "".join(
    f"from {name} import *\nimport {name}\n"
    for name in ("typing", "collections", "heapq", "bisect", "math", "itertools", "functools", "string", "re")
)
"""Imports before a program whose function is called."""
MAX_FILE_MIB = 16
"""Upper limit for a file of a program, and so for its standard input."""
BEFORE = f"""
import types as _types
_same = _types.ModuleType("same_output")
exec({Path(__file__).with_name("same_output.py").read_text()!r}, vars(_same))
"""
STDIO = """
for _number, (_given, _wanted) in enumerate({cases!r}):
    _found = run_program(_given)
    assert _same.same_text(_found, _wanted), f"case {{_number}}: {{_found[:60]!r}}, not {{_wanted[:60]!r}}"
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
    _right = _same.same_value(_found, _wanted) or _same.same_value(_found, _first)
    assert _right, f"case {{_number}}: {{_found!r:.60}}, not {{_wanted!r:.60}}"
"""
CALL_TYPES = ("functional", "function_call")
"""Types of cases that are calls, as LiveCodeBench and verifiable-coding-problems name them."""
_DATA = re.compile(r"""\s*(\{\s*['"]|\[\s*[\[{'"])""")
"""Beginning of the text of an object or a list."""


def data_in(ground_truth: Any) -> Any:
    """Return the object or list in a text that is its JSON or Python literal; anything else as it is."""
    if not isinstance(ground_truth, str) or not _DATA.match(ground_truth):
        return ground_truth
    for read in (json.loads, ast.literal_eval):
        try:
            with warnings.catch_warnings(action="ignore"):  # such as one of an escape in a text
                return read(ground_truth)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
    return ground_truth


def cases_of(ground_truth: Any) -> dict[str, Any] | None:
    """Return a ground truth that is an object or a list of cases, or their text, as an object; None for another."""
    found = data_in(ground_truth)
    if isinstance(found, dict) and (inner := cases_of(found.get("test_cases"))) is not None:
        return inner if are_calls(inner) else inner | {"fn_name": found.get("fn_name")}
    if not isinstance(found, list):
        return found if isinstance(found, dict) else None
    if not found or not all(isinstance(case, dict) and {"input", "output"} <= {*case} for case in found):
        return None
    names = {*filter(None, map(_name, found))}
    called = bool(names) or any(case.get("type", case.get("testtype")) in CALL_TYPES for case in found)
    name = names.pop() if len(names) == 1 else sorted(names) if called else None
    return {"inputs": [case["input"] for case in found], "outputs": [case["output"] for case in found], "fn_name": name}


def are_calls(cases: dict[str, Any]) -> bool:
    """Return True for cases that call a function; others run the whole program."""
    return cases.get("fn_name") not in (None, "")


def _name(case: dict[str, Any]) -> str | None:
    """Return the name of the function that a case calls."""
    about = case.get("metadata")
    name = case.get("fn_name") or (about.get("func_name") if isinstance(about, dict) else None)
    return str(name) if name else None


def tests_of(cases: dict[str, Any]) -> str:
    """Return Python text that ends normally only if the program passes all cases: see answer_link.py for its names.

    Raises ValueError for cases without as many outputs as inputs, with inputs of the wrong kind, or without an output.
    """
    inputs, outputs = (cases.get(f"{kind}s", cases.get(kind)) for kind in ("input", "output"))
    if isinstance(inputs, str) and isinstance(outputs, str):
        inputs, outputs = [inputs], [outputs]
    if not isinstance(inputs, list) or not isinstance(outputs, list) or not inputs or len(inputs) != len(outputs):
        raise ValueError(
            "the ground truth of python is its unit tests; an object has lists of as many outputs as inputs, not empty"
        )
    pairs = list(zip(inputs, outputs, strict=True))
    if are_calls(cases):
        return BEFORE + _calls(cases["fn_name"], pairs)
    texts = [tuple("\n".join(map(str, x)) if isinstance(x, list) else x for x in pair) for pair in pairs]
    if not all(isinstance(x, str) for pair in texts for x in pair):
        raise ValueError("inputs and outputs of a program are texts, or lists of lines")
    if not any(wanted.strip() for _, wanted in texts):
        raise ValueError("the outputs are all empty: a program that does nothing would pass")
    if max(len(given.encode(errors="replace")) for given, _ in texts) > MAX_FILE_MIB * 2**20:
        raise ValueError(f"an input has more than {MAX_FILE_MIB} MiB, which the sandbox does not hold")
    return BEFORE + STDIO.format(cases=texts)


def _calls(name: Any, pairs: list[Any]) -> str:
    """Return Python text that calls the function `name`. Raises ValueError for a name or inputs of the wrong kind."""
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"cases that are calls need fn_name, the name of one function, not {name!r:.60}")
    try:
        read = [
            ([json.loads(line) for line in given.split("\n") if line.strip()], [json.loads(wanted)])
            if isinstance(given, str) and isinstance(wanted, str)
            else (given, wanted)
            for given, wanted in pairs
        ]
    except (ValueError, RecursionError):
        raise ValueError(f"text for calls of fn_name {name!r:.60} is JSON, one argument a line") from None
    if not all(isinstance(given, list) for given, _ in read):
        raise ValueError(f"each of the inputs of fn_name {name!r:.60} is a list of arguments")
    return CALLS.format(name=name, cases=json.dumps(read))
