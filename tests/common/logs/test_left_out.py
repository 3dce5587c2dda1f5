"""Notes on what could not be read."""

from entrostat.logs.foreign.left_out import LONGEST, LeftOut


def test_texts_are_told_where_numbers_are_or_were_meant():
    left = LeftOut()
    for step in (3, 4):
        left.add_text("entropy", "high", step)
        left.add_text("note", "a", step)
    left.add_text("loss", "1,234", 5)
    assert left.notes({"entropy"}) == [
        "2 values of entropy cannot be read, the first “high” at step 3",
        "1 value of loss cannot be read, the first “1,234” at step 5",
    ]
    assert "the first value of loss is “1,234”, at step 5" in left.reason()


def test_the_first_step_that_there_is_and_texts_are_short():
    left = LeftOut()
    for step in (None, "a\n" + "b" * 100, 0.5):
        left.add_step(step)
    (note,) = left.notes(set())
    assert note.startswith("3 lines without a readable step (the first is “a b")
    assert len(note) < LONGEST + 80
    assert "\n" not in left.reason()
    assert LeftOut().reason() == ""
    assert LeftOut().notes({"entropy"}) == []


def test_of_many_metrics_three_are_named():
    left = LeftOut()
    for name in "abcde":
        left.add_text(name, "x", 1)
    assert left.notes(set("abcde"))[3:] == ["nor can values of 2 other metrics"]
