"""Names that Python text defines and needs."""

import pytest

from llmtrain.verifiers.code_names import asked, defined, needed, unknown


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("def f(): pass\nclass A: pass\nx = 1\nif x:\n    y = 2", {"f", "A", "x", "y"}),
        ("import math\nfrom a import b\nf(2)", set()),
        ("def f(:\nclass A\nx = 1\nx == 2", {"f", "A", "x"}),
    ],
)
def test_defined(code, names):
    assert defined(code) == names


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("assert add(1, 2) == len([3])", {"add", "len"}),
        ("import m\ny = 1\ndef t(x):\n    z = 2\n    return f(x, y, z, m)", {"f"}),
        ("def t():\n    global g\n    g = 1\nt()\ng", set()),
        ("[x for x in xs]\nlambda a: a + b\n__name__", {"xs", "b"}),
        ("class A:\n    y = q\n    def m(self): return self.z", {"q"}),
        ("f(", set()),
    ],
)
def test_needed(code, names):
    assert needed(code) == names


def test_unknown_leaves_out_what_is_built_in_or_may_be_imported():
    assert unknown("print(f(len(x)))") == {"f", "x"}
    assert unknown("from math import *\nprint(gcd(2, 4))") == frozenset()


def test_asked_has_the_imports_from_the_program():
    text = "import solution\nfrom solution import add, (\nfrom solution import (\n    A,\n    b\n)\nsolution.c(sub(1))"
    assert asked("from solution import add\nadd(1)") == {"add"}
    assert {"A", "b"} <= asked("from solution import (\n    A,\n    b\n)\nA(b)")
    assert asked("import solution\nsolution.c(sub(1))") == {"c", "sub"}
    assert asked(text)
