"""docs/reliability.md names tests that exist."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "reliability.md").read_text(encoding="utf-8")


def test_every_test_on_the_page_exists():
    files = {path: path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py")}
    defined = {name for text in files.values() for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}
    named = re.findall(r"`(?:([\w/]+\.py))?(?:::)?(test_\w+)?`", PAGE)
    tests = {test for _, test in named if test}
    modules = {module for module, _ in named if module}
    assert tests
    assert tests <= defined, tests - defined
    assert all(any(str(path).endswith(f"/{module}") for path in files) for module in modules)
