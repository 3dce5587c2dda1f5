"""Tests that check nothing are refused; comparisons and HumanEval's check count."""

import pytest

from llmtrain.verifiers.called_tests import called
from llmtrain.verifiers.python_tests import plan_of

CHECK = "METADATA = {}\n\n\ndef check(candidate):\n    assert candidate(1) == 2"
NOTHING = [
    ("# nothing yet", "check nothing"),
    ("import math\nfrom typing import List", "check nothing"),
    ("f(2)", "check nothing"),
    ("print(f(2) == 3)", "check nothing"),
    ("result = f(2) == 3", "check nothing"),
    ("assert True", "check nothing"),
    ("'assert f(2) == 3'", "check nothing"),
    ("check(f)", "check nothing"),
    ("def test_a():\n    f(2)", "check nothing"),
    ("def test_a():\n    pass", "check nothing"),
    ("class TestA:\n    def test_a(self):\n        f(2)", "check nothing"),
    ("import doctest\ndoctest.testmod()", "check nothing"),
    ("[1, 2, 3]", "check nothing"),
    ("x = 3\nassert x == 3", "name nothing of the program"),
    (CHECK, r"define check\(candidate\) and never call it.*entry_point"),
    (f"{CHECK}\nassert f(1) == 2", r"define check\(candidate\) and never call it"),
    ("def run():\n    assert f(1) == 2", r"define run\(\) and never call it.*run\(\)$"),
    ("async def test_a():\n    assert f(1) == 2", r"define test_a\(\) and never call it"),
    ("def a():\n    b()\ndef b():\n    assert f(1) == 2", r"never call it"),
    ("assert f(1) ==", "no Python"),
    (">>> f(1)\n2", "no Python"),
    ("check = lambda x: x == 2\ncheck(f(1))", "check nothing"),
    ("def check(x):\n    print(x == 2)\ncheck(f(1))", "check nothing"),
    ("try:\n    f(1)\nexcept Exception:\n    raise", "check nothing"),
    ("try:\n    f(1)\nexcept Exception as error:\n    raise error", "check nothing"),
    ("if f(1) != 2:\n    print('wrong')", "check nothing"),
    ("5", "check nothing"),
]


@pytest.mark.parametrize(("tests", "said"), NOTHING)
def test_tests_that_check_nothing_are_refused(tests, said):
    with pytest.raises(ValueError, match=said) as caught:
        plan_of(tests)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "tests",
    [
        "assert f(2) == 3",
        "assert f(2)",
        "assert not f(2)",
        f"{CHECK}\n\ncheck(f)",
        "def run():\n    assert f(1) == 2\nif __name__ == '__main__':\n    run()",
        "def one():\n    assert f(1) == 2\nfor each in [one]:\n    each()",
        "def check_f():\n    assert f(1) == 2\nglobals()['check_f']()",
        "if f(2) != 3:\n    raise ValueError(2)",
        "import sys\nif f(2) != 3:\n    sys.exit(1)",
        "try:\n    f(-1)\nexcept ValueError:\n    pass\nelse:\n    raise AssertionError",
        "np.testing.assert_allclose(f(2), 3)",
        "import numpy as np\nnp.testing.assert_array_equal(f(2), [3])",
        "import unittest\nunittest.TestCase().assertEqual(f(2), 3)",
        "case = [(1, 2)]\nfor x, y in case:\n    assert f(x) == y",
        "tests = [lambda: one()]\ndef one():\n    assert f(1) == 2\ntests[0]()",
        "class Cases:\n    def run(self):\n        assert f(1) == 2\nCases().run()",
        "assert sum(1, 2) == 4",
        "import importlib\nm = importlib.import_module('solution')\nassert m.f(1) == 2",
    ],
)
def test_tests_that_check_something_are_left_as_they_are(tests):
    assert called(tests) == tests


@pytest.mark.parametrize(
    "tests",
    [
        "from solution import f\ndef test_a():\n    assert f(1) == 2",
        "import solution\nassert solution.f(1) == 2",
        "import pytest\nfrom solution import f\ndef test_a():\n    with pytest.raises(ValueError):\n        f(1)",
        "import unittest\nclass HalfTest(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(f(8), 4)",
        "class TestA:\n    def like(self, x):\n        assert f(x) == 2\n    def test_a(self):\n        self.like(1)",
    ],
)
def test_functions_that_check_something_are_run(tests):
    assert tests in called(tests)


@pytest.mark.parametrize(
    ("tests", "asserted"),
    [
        ("f(2) == 3", "assert f(2) == 3"),
        ("f(2) == 3, 'not 3'", "assert f(2) == 3, 'not 3'"),
        ("f(2) == 3, f(3) == 4", "assert f(2) == 3 and f(3) == 4"),
        ("not f(2) == 3", "assert not f(2) == 3"),
        ("f(2) == 3 and f(3) in [4]", "assert f(2) == 3 and f(3) in [4]"),
        ("math.isclose(f(2), 3)", "assert math.isclose(f(2), 3)"),
        ("assert (f(2) == 3, 'not 3')", "assert f(2) == 3, 'not 3'"),
        ("assert f(1) == 2\nf(2) == 3", "assert f(1) == 2\nassert f(2) == 3"),
    ],
)
def test_a_comparison_counts_as_the_assertion_that_it_means(tests, asserted):
    assert called(tests) == asserted


def test_a_comparison_in_a_test_function_counts_too():
    assert "    assert f(1) == 2" in called("def test_a():\n    f(1) == 2")


def test_check_is_called_with_the_entry_point():
    assert plan_of({"test": CHECK, "entry_point": "f"}).tests.endswith("\n\ncheck(f)\n")
    assert plan_of({"test": f"{CHECK}\ncheck(f)", "entry_point": "f"}).tests.count("check(") == 2
    assert called(f"from solution import f\n{CHECK}").count("check(f)") == 1
    with pytest.raises(ValueError, match="never call it"):
        plan_of(f"from solution import f, g\n{CHECK}")


@pytest.mark.parametrize("name", [3, "", "f(1)", ["f"]])
def test_an_entry_point_is_a_name(name):
    with pytest.raises(ValueError, match="entry_point"):
        plan_of({"test": CHECK, "entry_point": name})


def test_a_list_of_assertions_as_text_is_read():
    for text in ('["assert f(1) == 2", "assert f(2) == 3"]', "['assert f(1) == 2', 'assert f(2) == 3']"):
        assert plan_of(text).tests == "assert f(1) == 2\nassert f(2) == 3"
