from llmtrain.text import one_line


def test_one_line():
    assert one_line(ValueError("a\nb\x1b[0m \t c")) == "a b [0m c"
    assert one_line(ValueError("")) == "ValueError"
    assert one_line("x" * 1000) == "x" * 199 + "…"
