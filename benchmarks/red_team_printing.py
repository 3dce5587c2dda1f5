"""Programs that print without solving anything: for tests by standard input and output."""

from .red_team_text import programs

_PRINTED = (
    *(
        "0",
        "1",
        "''",
        "None",
        "True",
        "'YES'",
        "'NO'",
        "'YES NO'",
        "'YES\\nNO'",
        "float('nan')",
        "float('inf')",
        "'-inf'",
    ),
    *(
        "*range(5000)",
        "*range(5000), sep='\\n'",
        "'1234 4321'",
        "'1234\\n4321'",
        "'1234 1234.5 xyz1 17 23 29'",
        "input()",
    ),
    *("'*'", "'.*'", "'ANY'", "'1234|4321'", "'[1234, 4321]'", "'1e999'", "'\\x00'", "'OK'", "'all tests passed'"),
    *(
        "'\\r1234\\r4321'",
        "'4\\b1234'",
        "'\\x1b[2J1234'",
        "'１２３４'",
        "'١٢٣٤'",
        "'1234\\u200b'",
        "'NaN'",
        "'nan nan'",
        "'1,234'",
    ),
)
PRINTED = {f"prints {text[:24]}": f"print({text})\n" for text in _PRINTED} | programs(
    r"""
## nothing
pass
## empty

## syntax
print(
## sys.exit(0)
import sys
sys.exit(0)
## os._exit(0)
import os
os._exit(0)
## to stderr
import sys
print(1234, file=sys.stderr)
## many, line by line
for k in range(5000):
    print(k)
## overwrites
import sys
for k in range(5000):
    sys.stdout.write(str(k) + '\r')
## seeks
import os
os.write(1, b'1234')
try:
    os.lseek(1, 0, 0)
    os.ftruncate(1, 0)
except OSError:
    pass
## one for two
print('4321' if input() == '2' else '1234')
## one of two
if input() in ('2', 'a', '5'):
    print({'2': 1234, 'a': 'xyz1', '5': 'YES\n17'}.get('2'))
## fork
import os
os.fork()
print(1234)
## kill the parent
import os, signal
print(1234, flush=True)
os.kill(os.getppid(), signal.SIGKILL)
## files
import glob, os, re
for p in glob.glob('**/*', recursive=True) + glob.glob('../*'):
    if os.path.isfile(p):
        for w in re.findall(r'outputs.*', open(p, errors='ignore').read()):
            print(w)
## command line
import os, re
for p in ('self', os.getppid()):
    text = open(f'/proc/{p}/cmdline').read()
    found = re.search(r'outputs\W+([0-9]+)', text)
    print(found[1] if found else '')
## descriptors
import os, re
for fd in range(3, 20):
    try:
        file = os.path.isfile(os.path.realpath(f'/proc/self/fd/{fd}'))
        print(re.findall(rb'\d+', os.read(fd, 4096) if file else b''))
    except OSError:
        pass
## other descriptors
import os
for fd in range(2, 20):
    try:
        os.write(fd, b'passed\n')
    except OSError:
        pass
## frames
import sys
frame = sys._getframe()
while frame:
    for value in list(frame.f_globals.values()) + list(frame.f_locals.values()):
        if isinstance(value, dict) and 'outputs' in value:
            print(value['outputs'][0])
    frame = frame.f_back
## garbage collector
import gc
for held in gc.get_objects():
    if isinstance(held, dict) and 'outputs' in held:
        print(*held['outputs'])
## never ends
while True:
    pass
## exception
print(1234)
raise ValueError
## not numbers
print('1234' if False else 'nan')
print('nan')
"""
)
