"""Failures of checks that something in the tests catches."""

import pytest

from llmtrain.verifiers.called_tests import called
from llmtrain.verifiers.reached_code import Catch, ends_in

CAUGHT = [
    "try:\n    {}\nexcept AssertionError:\n    print('fail')",
    "try:\n    {}\nexcept (KeyError, AssertionError) as error:\n    print(error)",
    "try:\n    {}\nexcept Exception as error:\n    print(error)",
    "try:\n    {}\nexcept builtins.Exception:\n    pass",
    "try:\n    {}\nexcept:\n    pass",
    "try:\n    try:\n        {}\n    except ValueError:\n        pass\nexcept BaseException:\n    pass",
    "try:\n    try:\n        {}\n    except AssertionError:\n        raise\nexcept Exception:\n    pass",
    "import contextlib\nwith contextlib.suppress(AssertionError):\n    {}",
    "def run():\n    {}\ntry:\n    run()\nexcept Exception:\n    pass",
    "def run():\n    try:\n        {}\n        run()\n    except Exception:\n        pass\nrun()",
    "def test_a():\n    for x in [1]:\n        try:\n            {}\n        except Exception:\n            continue",
    "class TestA:\n    def test_a(self):\n        try:\n            {}\n        except Exception:\n            pass",
    "try:\n    {}\nexcept ValueError:\n    raise\nexcept Exception:\n    pass",
]
ENDS = [
    "try:\n    {}\nexcept ValueError:\n    pass",
    "try:\n    {}\nexcept AssertionError:\n    print('fail')\n    raise",
    "try:\n    {}\nexcept AssertionError as error:\n    raise RuntimeError('fail') from error",
    "import sys\ntry:\n    {}\nexcept AssertionError:\n    sys.exit(1)",
    "try:\n    {}\nexcept AssertionError:\n    raise\nexcept Exception:\n    pass",
    "try:\n    pass\nexcept Exception:\n    pass\nelse:\n    {}",
    "try:\n    pass\nexcept Exception:\n    pass\nfinally:\n    {}",
    "def stop():\n    raise SystemExit(1)\ntry:\n    {}\nexcept AssertionError:\n    stop()",
    "right = True\ntry:\n    {}\nexcept AssertionError:\n    right = False\nassert right",
    "import contextlib\nwith contextlib.suppress(ValueError):\n    {}",
    "def run():\n    {}\ntry:\n    run()\nexcept Exception:\n    pass\nrun()",
    "try:\n    def test_a():\n        {}\nexcept ImportError:\n    pass",
]


@pytest.mark.parametrize("tests", CAUGHT)
@pytest.mark.parametrize("check", ["assert f(1) == 2", "if f(1) != 2: raise AssertionError(1)", "f(1) == 2"])
def test_a_check_whose_failure_is_caught_is_none(tests, check):
    with pytest.raises(ValueError, match=r"^the tests catch each failure of their own checks, .* raise in its except$"):
        called(tests.format(check))


@pytest.mark.parametrize("tests", ENDS)
def test_a_check_whose_failure_ends_the_tests_is_one(tests):
    assert called(tests.format("assert f(1) == 2"))


@pytest.mark.parametrize(
    ("raised", "caught", "ends"),
    [
        ("KeyError", "LookupError", True),
        ("LookupError", "KeyError", False),
        ("Wrong", "Wrong", True),
        ("Wrong", "Exception", True),
        ("Wrong", "ValueError", False),
        ("SystemExit", "Exception", False),
        ("SystemExit", "BaseException", True),
    ],
)
def test_an_error_is_caught_by_its_kinds(raised, caught, ends):
    assert ends_in(raised, ((Catch((caught,), False),),)) is ends


def test_a_check_that_is_caught_may_stand_beside_another():
    tests = "try:\n    assert f(1) == 2\nexcept AssertionError:\n    pass\nassert f(2) == 3"
    assert called(tests) == tests
