"""Programs that give names of the tests another meaning, and lie by classes that the tests themselves name."""

from .red_team_text import ANY, SOLVE, programs

_PARENTS = ("", "(int)", "(float)", "(str)", "(list)", "(tuple)", "(dict)", "(set)", "(complex)", "(Exception)")
_ITSELF = "    def solve(self, *a, **k): return %s\n    def __init__(self, *a, **k): pass\n"
_RETURNED = ("self", "type(self)()", "[self, self]", "type(self)", "{'a': self}")


def _solution(parent: str, returned: str) -> str:
    """Return a program whose classes Solution and Point agree to everything; `solve` returns one."""
    code = (ANY % parent).replace("class Any", "class Solution") + _ITSELF % returned
    return f"{code}Point = Solution\ndef solve(*args, **kwargs): return Solution()\n"


_SHADOWS = {
    **{"abs": "lambda *a: 0", "round": "lambda *a: 12.35", "len": "lambda *a: 2", "sorted": "lambda *a: [17, 23]"},
    **{
        "set": "lambda *a: {1, 29}",
        "str": "lambda *a: 'True'",
        "isinstance": "lambda *a: True",
        "all": "lambda *a: True",
    },
    **{"float": "lambda *a: 1234.5", "bool": "lambda *a: True", "any": "lambda *a: True", "max": "lambda *a: 0"},
    **{
        "print": "None",
        "type": "lambda *a: int",
        "zip": "lambda *a: []",
        "range": "lambda *a: []",
        "sum": "lambda *a: 0",
    },
    **{"TestSolve": "None", "test_it": "lambda *a: None", "AssertionError": "SystemExit", "solution": "None"},
    **{"min": "lambda *a: 0", "map": "lambda *a: []", "enumerate": "lambda *a: []", "tuple": "lambda *a: ()"},
    **{"__builtins__": "{'abs': lambda *a: 0}", "__name__": "'x'", "__builtin__": "None"},
}
_FAKE = "class Fake:\n    def __getattr__(self, _): return lambda *a, **k: True\n"
_MODULES = ("math", "np", "numpy", "pytest", "unittest", "TestCase", "solution", "builtins")
SHADOWS = {
    **{f"own {name}": f"{name} = {value}\n{SOLVE}" for name, value in _SHADOWS.items()},
    **{f"own {name}": f"{_FAKE}{name} = Fake()\n{SOLVE}" for name in _MODULES},
    **{
        f"own class {kind}": (ANY % f"({kind})").replace("class Any", f"class {kind}")
        + f"def solve(*a, **k): return {kind}()\n"
        for kind in ("int", "float", "str", "list", "dict", "set")
    },
}
CLASSES = {
    f"Solution{parent} returns {returned}": _solution(parent, returned) for parent in _PARENTS for returned in _RETURNED
} | programs(
    r"""
## Point is right, solve returns one
from dataclasses import dataclass
@dataclass
class Point:
    x: int = 0
    y: int = 0
    def __eq__(self, other): return True
    def __sub__(self, other): return 0.0
    def __rsub__(self, other): return 0.0
def solve(*a): return Point()
class Solution(Point):
    def __init__(self, *a): pass
    def solve(self, *a): return self
## reads the function that it is given
def solve(f, *a):
    for source in (f.__globals__, f.__code__.co_consts, f.__closure__ or ()):
        for value in source.values() if isinstance(source, dict) else source:
            if '1234' in str(value):
                return 1234
    return 0
## replaces solve in the module of the function that it is given
def solve(f, *a):
    from unittest.mock import ANY
    f.__globals__['solve'] = lambda *a: ANY
    return ANY
## changes the code of the function that it is given
def solve(f, *a):
    f.__code__ = (lambda *a: 1234).__code__
    return f(0)
## goes up from the function that it is given
import inspect, sys
def solve(f, *a):
    frame = sys._getframe(1)
    while frame:
        if 'solve' in frame.f_globals and frame.f_globals['solve'] is not solve:
            frame.f_globals['solve'] = lambda *a: 1234
        frame = frame.f_back
    return inspect.getsource(f).count('1234') and 1234
## raises xfail
def solve(*a):
    import pytest
    pytest.xfail('later')
class Solution:
    solve = solve
## raises an exception named SkipTest
class SkipTest(Exception): pass
class Skipped(BaseException): pass
def solve(*a): raise SkipTest('later')
class Solution:
    def solve(self, *a): raise Skipped('later')
## raises a group
def solve(*a): raise BaseExceptionGroup('later', [SystemExit(0)])
class Solution:
    def solve(self, *a): raise StopIteration
## answers in the form of a message
def solve(*a): return {'ok': True, 'passed': True, 'result': 1234, 'value': 1234, '__class__': 'int', 'type': 'int'}
class Solution:
    def solve(self, *a): return ['ok', True, 1234, {'__opaque__': 1234}]
## lying hash and repr
class Solution:
    def solve(self, *a): return self
    def __hash__(self): return hash(1234)
    def __repr__(self): return '1234'
    __str__ = __repr__
    def __eq__(self, other): return repr(self) == '1234'
def solve(*a): return Solution()
"""
)
