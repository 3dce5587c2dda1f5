from llmtrain.process.text import one_line, signal_name


def test_one_line():
    assert one_line(ValueError("a\nb\x1b[0m \t c")) == "a b [0m c"
    assert one_line(ValueError("")) == "ValueError"
    assert one_line("x" * 1000) == "x" * 199 + "…"


def test_signals_that_have_no_name():
    assert signal_name(9) == "SIGKILL"
    assert [signal_name(number) for number in (-1, 0, 40, 127)] == [""] * 4
