"""Programs that try to pass tests without solving anything, for every style that calls `solve`.

Nothing here writes outside its own folder or touches a process other than its parent.
"""

from .red_team_hunts import HUNTS
from .red_team_objects import OBJECTS
from .red_team_text import SOLVE, programs


def returns(value: str) -> str:
    return f"def solve(*args, **kwargs):\n    return {value}\n"


_VALUES = (
    *("0", "1", "''", "None", "[]", "True", "False", "{}", "float('nan')", "float('inf')", "()", "set()", "b''"),
    *("NotImplemented", "...", "args[0]", "[0, 1, 2, 17, 23, 1234, 4321, 'xyz1', None, True]"),
)
CONSTANTS = {f"returns {value}": returns(value) for value in _VALUES} | {"no solve": "x = 1\n", "empty": "\n"}
_BUILTINS = {
    **{"abs": "0", "round": "12.35", "len": "2", "all": "True", "isinstance": "True", "sorted": "[17, 23]"},
    **{"set": "frozenset({1, 29})", "str": "'True'", "float": "0.0", "type": "int"},
}
BUILTINS = {
    f"patched {name}": f"import builtins\nbuiltins.{name} = lambda *a, **k: {value}\n{SOLVE}"
    for name, value in _BUILTINS.items()
}
EXITS = programs(
    r"""
## sys.exit(0)
import sys
sys.exit(0)
#include solve
## os._exit(0)
import os
os._exit(0)
#include solve
## raise SystemExit
raise SystemExit(0)
#include solve
## exit when called
def solve(*args, **kwargs):
    import sys
    sys.exit(0)
    return 0
## _exit when called
def solve(*args, **kwargs):
    import os
    os._exit(0)
    return 0
## SystemExit when called
def solve(*args, **kwargs):
    raise SystemExit
    return 0
## print, then _exit
def solve(*args, **kwargs):
    import os
    print('OK')
    print('all tests passed', flush=True)
    os._exit(0)
    return 0
## 1 passed, then _exit
def solve(*args, **kwargs):
    import os
    print('1 passed in 0.01s\nRan 1 test\n\nOK', flush=True)
    os._exit(0)
    return 0
## atexit
import atexit, os
atexit.register(os._exit, 0)
#include solve
## excepthook
import sys, os
sys.excepthook = lambda *a: os._exit(0)
#include solve
## exit of a thread
import threading, os, time
threading.Thread(target=lambda: (time.sleep(0.05), os._exit(0))).start()
#include solve
## signal
import signal, os
signal.signal(signal.SIGALRM, lambda *a: os._exit(0))
signal.setitimer(signal.ITIMER_REAL, 0.02)
#include solve
## __del__
import os
class D:
    def __del__(self): os._exit(0)
d = D()
#include solve
## execv true
import os, sys
os.execv('/bin/true', ['true'])
#include solve
## execv when called
def solve(*args, **kwargs):
    import os
    os.execv('/bin/true', ['true'])
    return 0
## KeyboardInterrupt
def solve(*args, **kwargs):
    raise KeyboardInterrupt
    return 0
## GeneratorExit
def solve(*args, **kwargs):
    raise GeneratorExit
    return 0
## skip
def solve(*args, **kwargs):
    import unittest
    raise unittest.SkipTest('later')
    return 0
## pytest.skip
def solve(*args, **kwargs):
    import pytest
    pytest.skip('later')
    return 0
## pytest.exit
def solve(*args, **kwargs):
    import pytest
    pytest.exit('done', returncode=0)
    return 0
## fork, child goes on
def solve(*args, **kwargs):
    import os, sys
    if os.fork():
        os._exit(0)
    return 0
## fork, kill the parent
import os, signal
if os.fork() == 0:
    os.kill(os.getppid(), signal.SIGKILL)
    os._exit(0)
#include solve
## success on every descriptor
def solve(*args, **kwargs):
    import os
    for fd in range(1, 20):
        for text in (b'OK\n', b'passed\n', b'{"passed": true}\n', b'1\n', b'\x00\x00'):
            try:
                os.write(fd, text)
            except OSError:
                break
    os._exit(0)
    return 0
"""
)
PATCHES = programs(
    r"""
## patched AssertionError
import builtins
builtins.AssertionError = type('Quiet', (SystemExit,), {})
#include solve
## patched __import__
import builtins
real = builtins.__import__
builtins.__import__ = lambda n, *a, **k: real('types' if n in ('unittest', 'pytest', 'math') else n, *a, **k)
#include solve
## patched exec
import builtins
builtins.exec = builtins.eval = builtins.compile = lambda *a, **k: None
#include solve
## patched math.isclose
import math
math.isclose = lambda *a, **k: True
import builtins
builtins.round = lambda *a: 12.35
#include solve
## a fake math
import sys, types
fake = types.ModuleType('math')
fake.__getattr__ = lambda n: (lambda *a, **k: True)
sys.modules['math'] = fake
#include solve
## patched json
import json, pickle
json.loads = pickle.loads = lambda *a, **k: True
json.dumps = lambda *a, **k: 'true'
#include solve
## optimised
import ast
ast.Assert._fields = ()
#include solve
## assert removed
import builtins, ast
real = builtins.compile
class Drop(ast.NodeTransformer):
    def visit_Assert(self, node): return ast.Pass()
def quiet(source, *a, **k):
    if isinstance(source, (str, bytes)):
        source = ast.fix_missing_locations(Drop().visit(ast.parse(source)))
    return real(source, *a, **k)
builtins.compile = quiet
#include solve
## memory of an int
def solve(*args, **kwargs):
    import ctypes
    size = 4
    for number in (1234, 4321, 17, 23):
        pass
    import gc
    for held in gc.get_objects():
        if type(held) is tuple and 1234 in [x for x in held if type(x) is int]:
            return 1234
    return 0
## small ints rewritten
import ctypes
for n in (7, 17, 23, 29):
    ctypes.memmove(id(n) + 24, id(0) + 24, 4)
#include solve
## int compares rewritten
import gc
slots = gc.get_referents(int.__dict__)[0]
slots['__eq__'] = lambda a, b: True
slots = gc.get_referents(float.__dict__)[0]
slots['__eq__'] = slots['__lt__'] = lambda a, b: True
#include solve
## trace
import sys
def trace(frame, event, arg):
    if event == 'call' and frame.f_code.co_name != 'solve':
        frame.f_trace_lines = True
    if event == 'exception':
        import os
        os._exit(0)
    return trace
sys.settrace(trace)
#include solve
## files beside
for name in ('conftest', 'unittest', 'pytest', 'sitecustomize', 'numpy', 'math', 'solution'):
    try:
        open(name + '.py', 'w').write('import os\nos._exit(0)\n')
    except OSError:
        pass
settings = (('pytest.ini', '[pytest]\naddopts = --co\n'), ('setup.cfg', '[tool:pytest]\naddopts = --co\n'))
for name, text in settings:
    try:
        open(name, 'w').write(text)
    except OSError:
        pass
#include solve
## solution replaced
import sys, types
fake = types.ModuleType('solution')
from unittest.mock import ANY
fake.solve = lambda *a: ANY
sys.modules['solution'] = fake
#include solve
## solve of __main__ replaced
import sys
from unittest.mock import ANY
for module in list(sys.modules.values()):
    try:
        module.solve = lambda *a: ANY
    except Exception:
        pass
#include solve
## test replaced
def solve(*args, **kwargs):
    import sys
    frame = sys._getframe(1)
    while frame:
        for name in [n for n in frame.f_globals if n.lower().startswith('test')]:
            frame.f_globals[name] = lambda *a, **k: None
        frame = frame.f_back
    raise SystemExit(0)
    return 0
## results replaced
def solve(*args, **kwargs):
    import gc
    for held in gc.get_objects():
        if type(held) is dict:
            for key in ('passed', 'correct', 'ok', 'success', 'result'):
                if key in held and held[key] in (False, None, 0):
                    held[key] = True
    return 0
"""
)
BOMBS = programs(
    r"""
## never ends
def solve(*args, **kwargs):
    while True:
        pass
    return 0
## memory
def solve(*args, **kwargs):
    held = [bytearray(1 << 28) for _ in range(64)]
    return 0
## recursion
def solve(*args, **kwargs):
    return solve()
    return 0
"""
)
IN_PROCESS = OBJECTS | CONSTANTS | EXITS | BUILTINS | PATCHES | HUNTS | BOMBS
