"""Text of many programs, one below the other.

programs("## first\nx = 1\n## second\n#include solve")     {"first": "x = 1", "second": "def solve(...): ..."}
"""

import re

ANY = """\
class Any%s:
    def yes(self, *a, **k): return True
    def no(self, *a, **k): return False
    def itself(self, *a, **k): return self
    __eq__ = __le__ = __ge__ = __lt__ = __gt__ = __contains__ = __bool__ = yes
    __ne__ = no
    __sub__ = __rsub__ = __add__ = __radd__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = itself
    __abs__ = __neg__ = __round__ = __call__ = __getitem__ = upper = lower = strip = sum = all = any = max = itself
    __pow__ = __mod__ = __and__ = __or__ = __iadd__ = __floordiv__ = itself
    def __float__(self): return 0.0
    def __int__(self): return 0
    def __index__(self): return 0
    def __hash__(self): return 0
    def __len__(self): return 2
    def startswith(self, *a): return True
"""
"""A class whose objects agree to everything; %s is its parent in brackets."""
SOLVE = "def solve(*args, **kwargs):\n    return 0\n"


def programs(text: str) -> dict[str, str]:
    """Return programs by name, which stands after ##; `#include Any(float)` and `#include solve` are replaced."""
    found = re.split(r"^## (.*)\n", text, flags=re.M)[1:]
    return {name: _included(code) for name, code in zip(found[::2], found[1::2], strict=True)}


def _included(code: str) -> str:
    code = re.sub(r"^#include Any(.*)\n", lambda match: ANY % match[1], code, flags=re.M)
    return re.sub(r"^#include solve\n?", lambda _: SOLVE, code, flags=re.M)
