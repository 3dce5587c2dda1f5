"""Last statement of a text without a mark: a formula, expression or list, and never a piece of it."""

import pytest

from llmtrain.verifiers.math.last_statement import last_statement


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("So it is $\\frac34$.", "\\frac34"),
        ("So it is \\frac{3}{4}.", "\\frac{3}{4}"),
        ("We get $x = 3, y = 4$.", "x = 3, y = 4"),
        ("so x = 3, y = 4", "x = 3,y = 4"),
        ("The roots are $3$ and $4$.", "3, 4"),
        ("The roots are 3 or $4$.", "3, 4"),
        ("The roots are 3 and 4.", "3,4"),
        ("Therefore $2^4$", "2^4"),
        ("so 1/4", "1/4"),
        ("3/4", "3/4"),
        ("It is 1 1/2.", "1 1/2"),
        ("It lies in [0, 4).", "[0, 4)"),
        ("The set is {1,2,3}.", "{1,2,3}"),
        ("The ratio is 3:4.", "3:4"),
        ("The ratio is 3 to 4.", "3 to 4"),
        ("The polynomial is x^2 + 3x + 5.", "x^2 + 3x + 5"),
        ("The sum is s + bs + 1.", "s + bs + 1"),
        ("The sum is s + 1 + bs.", "s + 1 + bs"),
        ("The sum is bs + 1.", "bs + 1"),
        ("Together $m+n = 8$.", "m+n = 8"),
        ("AB + CD = 5", "AB + CD = 5"),
        ("98765=5", "98765=5"),
        ("so 2x+3=8", "2x+3=8"),
        ("so 3n^2 * 5 = 8", "3n^2 * 5 = 8"),
        ("the values of 2x+3 = 8", "2x+3 = 8"),
        ("It is 6 + 9 i.", "6 + 9 i"),
        ("It is - 0.2.", "- 0.2"),
        ("so x < 5", "x < 5"),
        ("It is 2⅓.", "2⅓"),
    ],
)
def test_the_whole_is_the_answer(text, said):
    assert last_statement(text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("She sold 48+24 = <<48+24=72>>72 clips.", "72"),
        ("She paid 60 x .75 = $45 a day.", "\\$45\\text{ per day}"),
        ("It weighs 97 – 12 = 85 kg.", "85\\text{ kg}"),
        ("20% of 50 = 10", "10"),
        ("10 apples * 3 = 30", "30"),
        ("400 m + 500 m = 900 m", "900 m"),
        ("17 cubes + 18 cubes = 35 cubes", "35"),
        ("Half of 6, 6/2=3 hours", "3\\text{ hours}"),
        ("the value of x = 5", "5"),
        ("2x = 8 => x = 4", "x = 4"),
        ("2x = 8, x = 4", "x = 4"),
        ("$S = ab = 3 \\cdot 4 = 12$", "12"),
        ("$5\\text{ apples} + 3\\text{ apples} = 8\\text{ apples}$", "8\\text{ apples}"),
        ("\\begin{array}{l}\n=185 \\div 5, \\\\\n=37\n\\end{array}", "37"),
        ("\\[\n\\begin{aligned} x &= 2+3 \\\\ &= 5 \\end{aligned}\n\\]", "5"),
        ("It fell from 10 to 5.", "5"),
    ],
)
def test_work_before_a_value_is_no_part_of_it(text, said):
    assert last_statement(text).strip() == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("that makes 17 in all", "17"),
        ("There are 5 values of $x$.", "5"),
        ("So the direction is $x$, after 5 steps.", "5"),
        ("After 5 steps it is $x$.", "x"),
        ("total = **5**", "5"),
        ("(so we get 5)", "5"),
        ("1,234.5", "1,234.5"),
        ("- 5", "5"),
        ('It is "5".', "5"),
        ("So the number is 5!", "5"),
        ("$5 a day, so $10", "\\$10"),
    ],
)
def test_what_stands_beside_it_is_no_part_of_it(text, said):
    assert last_statement(text) == said


@pytest.mark.parametrize(
    "text", ["the square root of 5", "negative 5", "twice 5", "5 and a half miles", "5 million", "5 squared"]
)
def test_words_that_change_a_number_stay_with_it(text):
    said = last_statement(text)
    assert "5" in said
    assert said != "5"


@pytest.mark.parametrize(
    "text", ["", "nothing", "7" * 100, "It is not $5$.", "$5$. No, that is wrong.", "It may be 5."]
)
def test_no_statement(text):
    assert last_statement(text) is None
