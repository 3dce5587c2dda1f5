"""Programs that look for the tests and their answers, in frames, files, descriptors and memory."""

HUNT = """
import gc, glob, os, re, sys
def texts():
    frame = sys._getframe()
    while frame:
        held = list(frame.f_locals.values()) + list(frame.f_globals.values())
        yield from (repr(v) for v in held if isinstance(v, (str, bytes, list, tuple, dict)))
        yield from (repr(c) for c in frame.f_code.co_consts)
        frame = frame.f_back
    yield from ({extra})
def solve(*args, **kwargs):
    for text in texts():
        text = str(text)
        at = text.find('solve(' + repr(args[0]) + ')') if args else -1
        if at >= 0:
            found = re.search(r"(?:==|,) *([0-9.]+|'[a-z0-9]+'|\\[[0-9, ]+\\])", text[at:])
            if found:
                return eval(found[1])
        found = re.search(r"outputs\\W+\\[(.*?)\\]", text)
        if found:
            return eval('[' + found[1] + ']')[0]
        for known in (1234, 1234.5, 'xyz1', [17, 23], 4321):
            if {strict} and repr(known) in text and 'known in' not in text:
                return known
    return 0
"""


def _hunt(where: str, guesses: bool) -> str:
    return HUNT.replace("{extra}", where).replace("{strict}", str(guesses))


_FILES = "glob.glob('**/*', recursive=True) + glob.glob('../*.py')"
_OPEN = "f'/proc/self/fd/{fd}'"
HUNTS = {
    "frames": _hunt("[]", False),
    "frames, guesses": _hunt("[]", True),
    "garbage collector": _hunt(
        "(o for o in gc.get_objects() if type(o) in (list, tuple, dict) and len(repr(o)) < 9999)", False
    ),
    "its files": _hunt(f"(open(p, errors='ignore').read() for p in {_FILES} if os.path.isfile(p))", True),
    "command line": _hunt(
        "[sys.argv, sys.orig_argv] + [open(f'/proc/{p}/cmdline').read() for p in ('self', os.getppid())]", True
    ),
    "__main__": _hunt(
        "[dict(vars(m)) for n, m in list(sys.modules.items()) if n in ('__main__', 'solution', 'tests', 'test')]", False
    ),
    "standard input": _hunt("[sys.stdin.read()]", True),
    "open descriptors": _hunt(
        f"[os.pread(fd, 99999, 0) for fd in range(3, 20) if os.path.isfile(os.path.realpath({_OPEN}))]", True
    ),
    "source of the caller": _hunt(
        "[__import__('linecache').getlines(sys._getframe(k).f_code.co_filename) for k in (2, 3)]", True
    ),
    "memory": _hunt("[open('/proc/self/maps').read()]", True),
}
