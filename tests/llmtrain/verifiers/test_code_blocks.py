"""Block of a response that is judged."""

import pytest

from llmtrain.verifiers.code_blocks import program

F = "def f(x):\n    return helper(x)\n\ndef helper(x):\n    return x + 1"
READS = "n = int(input())\nprint(n + 1)"


def python(*codes):
    return "\n".join(f"Here:\n```python\n{code}\n```" for code in codes)


@pytest.mark.parametrize(
    "after",
    [
        "```python\nprint(f(1))\n```",
        "```python\nfrom solution import f\nassert f(1) == 2\n```",
        "```python\ndef test_f():\n    assert f(1) == 2\n```\n```\n2\n```",
        "```py\nresult = f(1)\n```\n```text\n2\n```",
        "```\n>>> f(1)\n2\n```",
        "```python\nx = 1 +\n```",
    ],
)
def test_a_use_after_the_function_is_not_the_program(after):
    assert program(f"{python(F)}\n{after}\nDone.", {"f", "len"}) == F


@pytest.mark.parametrize(
    "after",
    [
        "```python\nprint(solve(1))\n```",
        "```python\nimport io, sys\nsys.stdin = io.StringIO('1')\nmain()\nprint(2)\n```",
        "```\n2\n```",
        "```text\n2\n```",
        "```python\npip = 'install nothing'\n```",
        "Input:\n```\n1\n```\nOutput:\n```\n2\n```",
    ],
)
def test_a_use_after_the_script_is_not_the_program(after):
    assert program(f"{python(READS)}\n{after}\n", script=True) == READS


def test_the_last_of_equal_blocks_counts():
    first, second = "def f(x): return 1", "def f(x): return 2"
    assert program(python(first, second), {"f"}) == second
    assert program(python(READS, READS + " # corrected"), script=True).endswith("corrected")
    assert program(python("def f(x): return 1", "def f(x) return 2"), {"f"}) == "def f(x) return 2"
    assert program(python("print(1)", "print(2)"), script=True) == "print(2)"


def test_a_block_without_a_language_counts_if_it_alone_has_the_function():
    assert program(f"```\n{F}\n```\n{python('print(f(1))')}", {"f"}) == F
    assert program(f"{python(F)}\n```\ndef f(x): ...\n```\n", {"f"}) == F


def test_a_response_without_blocks_is_the_program():
    assert program(F, {"f"}) == F
    assert program(F + "\n```python\nprint(", {"f"}).startswith("def f")


def test_the_block_with_most_of_the_names_counts():
    both = "class A: pass\ndef f(x): return A()"
    assert program(python(both, "def f(x): return 1"), {"A", "f"}) == both


@pytest.mark.parametrize(
    "response",
    [
        "1. Step:\n   ```python\n   {}\n   ```\n",
        "1. Step:\n\n\t```python\n\t{}\n\t```\n",
        "Steps:\n- ```python\n  {}\n  ```\n",
        "   ```python\n{}\n   ```",
        "~~~python\n{}\n~~~",
        "~~~\n{}\n~~~~",
        "````python\n{}\n````",
        "Here:\n```python\n{}",
        "Here:\n```python\n{}\n",
        "1. Step:\n   ```python\n   {}",
    ],
)
def test_fences_in_their_forms(response):
    before = response[: response.index("{")].rpartition("\n")[2]
    assert program(response.format(F.replace("\n", f"\n{before}")), {"f"}).rstrip() == F


def test_a_block_keeps_indentation_beyond_that_of_its_fence():
    assert program("  ```python\n  if x:\n      f = 1\n  ```") == "if x:\n    f = 1"
    assert program("   ```python\nif x:\n  f = 1\n   ```") == "if x:\n  f = 1"


def test_other_marks_within_a_block_are_text():
    text = "def f(x):\n    '''\n    ```\n    x\n    ```\n    '''"
    assert program(f"~~~python\n{text}\n~~~", {"f"}) == program(f"````python\n{text}\n````", {"f"}) == text


def test_a_last_block_that_is_not_closed_counts_if_it_is_python():
    assert program(f"{python('def f(x): return 1')}\nBetter:\n```python\n{F}", {"f"}) == F
    cut = F + "\n\ndef g("
    assert program(f"{python('def f(x): return 1')}\nBetter:\n```python\n{cut}", {"f"}) == "def f(x): return 1"
    assert program(f"Here:\n```python\n{cut}", {"f"}).startswith("Here")
    assert program(f"{python(F)}\n```text\nf = 1", {"f"}) == F
