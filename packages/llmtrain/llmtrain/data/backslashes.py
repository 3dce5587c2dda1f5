r"""LaTeX commands that have lost their backslash to an escape of JSON or Python.

"\frac" in a JSON string is a form feed and "rac", "\text" a tab and "ext", "\beta" a backspace and "eta". Rests that
are words of their own, as of "\to" and "\not", are left alone.
"""

import re

LOST = {
    "a": ("lpha", "ngle", "pprox"),
    "b": ("ar", "egin", "eta", "igcap", "igcup", "igg", "igl", "igr", "inom", "mod", "oldsymbol", "oxed", "ullet"),
    "f": ("box", "lat", "orall", "rac"),
    "n": ("abla", "ewline", "eq", "otin"),
    "r": ("ceil", "floor", "ho", "ight", "ightarrow"),
    "t": ("binom", "ext", "extbf", "extit", "extrm", "frac", "herefore", "heta", "ilde", "imes", "riangle"),
    "v": ("arepsilon", "arphi", "ec", "ert"),
}
"""Rests of commands by the letter that became a control character with the backslash."""
_CONTROL = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
_LETTER = {control: letter for letter, control in _CONTROL.items()}
_RESTS = "|".join(f"{_CONTROL[letter]}(?:{'|'.join(rests)})" for letter, rests in LOST.items())
_PATTERN = re.compile(f"(?:{_RESTS})(?![a-zA-Z])")


def lost_backslash(text: object) -> str:
    r"""Return the first command in a text that has lost its backslash, such as "\frac"; "" for none."""
    found = _PATTERN.search(text) if isinstance(text, str) else None
    return f"\\{_LETTER[found[0][0]]}{found[0][1:]}" if found else ""
