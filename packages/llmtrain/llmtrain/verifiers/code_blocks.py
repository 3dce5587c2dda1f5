"""Block of a response that holds its program.

    ```python        def add(a, b): ...        the program: it defines what the tests ask for
    ```python        print(add(1, 2))          an example of its use
    ```              3                         what that prints

Blocks in Python come before those without a language, and of equal ones the last counts, so that a corrected program
replaces an earlier one. Fences are of ``` or ~~~; in a list, a block loses the indentation of its fence. A last block
that is never closed counts if it is whole Python. A response without blocks is the program itself. Blocks are not
joined.
"""

import re
from collections.abc import Collection, Iterator

from .code_names import defined, is_python, unknown

_FENCE = re.compile(
    r"^(?P<indent>[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?)(?P<marks>`{3,}|~{3,})"
    r"[ \t]*(?:[{.]*(?P<language>[\w+#-]+)[^`\n]*)?\r?$",
    re.MULTILINE,
)
"""Line that opens a block, with its language, or closes one; it may begin an item of a list."""
_PYTHON = ("python", "python3", "py")
_READS = re.compile(r"\binput\b|\bstdin\b|\bopen\(\s*0\b|\bos\.read\b")
_PRINTS = re.compile(r"\bprint\b|\bstdout\b|\bos\.write\b")


def program(response: str, names: Collection[str] = (), *, script: bool = False) -> str:
    """Return the program of a response.

    names: what the tests ask for; the block that defines most of these counts. script: the program is run on standard
    input, so the block counts that reads it, else one that prints, of these one that needs nothing from other blocks.
    """
    blocks = [*_blocks(response)]
    if not blocks:
        return response

    def rank(at: int) -> tuple[int, ...]:
        text, python = blocks[at]
        fit = _as_script(text) if script else (len(defined(text) & {*names}),)
        return (*fit, python, at)

    return blocks[max(range(len(blocks)), key=rank)][0]


def _blocks(response: str) -> Iterator[tuple[str, bool]]:
    """Yield text of each block that may be Python, and True if it says so; the last may lack its end."""
    opening = None
    for fence in _FENCE.finditer(response):
        if opening is None:
            opening = fence
        elif fence["marks"].startswith(opening["marks"]):
            if fence["language"]:
                opening = fence
                continue
            if _may_be_python(opening):
                yield _text(response[opening.end() : fence.start()], opening), bool(opening["language"])
            opening = None
    if opening and _may_be_python(opening):
        text = _text(response[opening.end() :], opening)
        if text.strip() and is_python(text):
            yield text, bool(opening["language"])


def _may_be_python(opening: re.Match[str]) -> bool:
    return (opening["language"] or "python").lower() in _PYTHON


def _text(text: str, opening: re.Match[str]) -> str:
    """Return the text of a block without the indentation of its fence, if its first line has some."""
    text, width = text.strip("\r\n"), len(opening["indent"])
    if not width or not re.match(r"\s*^[ \t]+\S", text, re.MULTILINE):
        return text
    return re.sub(rf"^[ \t]{{1,{width}}}", "", text, flags=re.MULTILINE)


def _as_script(text: str) -> tuple[bool, bool, bool]:
    return bool(_READS.search(text)), bool(_PRINTS.search(text)), not unknown(text)
