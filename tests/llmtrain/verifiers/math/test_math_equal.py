"""Answers that are equal, different or read in two ways; both predictions of the parser read the same."""

import time

import pytest
from antlr4 import PredictionMode
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from math_verify.parser import parse_latex_cached
from sympy import srepr

from llmtrain.verifiers import get_verifier
from llmtrain.verifiers.math import math_reading, same_tree
from llmtrain.verifiers.math.math_equal import equal

FORMS = r"""
x^{2} + 5 ; x^2+5 ; y^{3} - 2 x + 1 ; (x^{2})+3 ; -x^{2}+4 ; 100p^{\frac{1}{2}} ; [P^{2/5}-\frac{2}{5}z]^{5/2}
\frac{2-x^{2}}{x^{4}-\frac{63}{16}x^{2}+4} ; -\frac{1}{2}X^{-\frac{1}{2}} ; \sin^{2} x + 5 ; (1, 2) ; y = 3 ; 12_5
x \in [0, 1) ; \{1, 2\} ; \text{even} ; 3\pm 2\sqrt{2} ; \begin{pmatrix} 1 & 2 \end{pmatrix}
"""
TEXTS = [text for line in FORMS.split("\n") for text in line.split(" ; ") if text]


EQUAL = r"""
x^2-1 ; (x-1)(x+1)
x^{2} + 5 ; 5+x^2
\frac{1}{2}+\frac{1}{3} ; 5/6
\frac12 ; 0.5
\frac xy ; x/y
\frac\pi6 ; \pi/6
\frac{x^2-1}{x-1} ; x+1
0.1+0.2 ; 0.3
x^{-1} ; 1/x
10^-3 ; 0.001
2\sqrt{2} ; \sqrt{8}
\frac{1}{\sqrt{2}} ; sqrt(2)/2
\sqrt{6} ; \sqrt{2}\sqrt{3}
\sqrt{3+2\sqrt{2}} ; 1+\sqrt{2}
2\sqrt[3]{7} ; \sqrt[3]{56}
\frac{2\pi}{12} ; pi/6
i^2 ; -1
\frac{1+i}{1-i} ; i
e^3 ; e\cdot e^2
e^{i\pi} ; -1
\exp(2t) ; e^{2t}
2^{n+1} ; 2\cdot 2^n
e^t(t) ; te^t
(\frac14)^{1/2} ; \frac12
5^0 ; 1
2^{1009} ; 2\cdot 2^{1008}
x^{99}\cdot x^{99}\cdot 3^{99} ; 3^{99}\cdot x^{98}\cdot x^{100}
\sin(3x) ; \sin(x\cdot 3)
\sin 2x ; 2\sin x\cos x
\sin^2 x+\cos^2 x ; 1
\sin\frac{\pi}{6} ; 0.5
\arcsin(1) ; \frac{\pi}{2}
\sin^{-1}(1) ; \frac{\pi}{2}
\cos(\omegat) ; \cos(t\omega)
\log_2 8 ; 3
\log_{2}(5) ; \log_2 5
\log_{\frac12} 4 ; -2
\lg 100 ; 2
\ln e ; 1
\sin\pi ; 0
\cos\frac{\pi}{2} ; 0
\arccos(\sqrt{2}\sqrt{2}/2) ; 0
\ln(\sqrt{2}\sqrt{2}/2) ; 0
\log_{10} 250 ; 1+2\log_{10}5
\frac{\log 2}{\log 3} ; \log_3 2
\lfloor 7/2 \rfloor ; 3
\lceil 7/2 \rceil ; 4
\lfloor\sqrt{2}\sqrt{2}\rfloor ; 2
\lfloor\sqrt{3}\sqrt{3}\rfloor ; 3
\lceil\sqrt{5}\sqrt{5}\rceil ; 5
|-3| ; 3
5! ; 120
0!+1! ; 2
\binom{6}{2} ; 15
\binom{6}{1}+\binom{1}{0} ; 7
3\frac{1}{2} ; 7/2
3\frac{x}{2} ; \frac{3x}{2}
137\frac12 ; 137.5
4.5e33 ; 4.5\times 10^{33}
1.6e-19 ; 1.6\cdot 10^{-19}
2e-1 ; 2 e-1
30^\circ ; 30
5\text{ cm}^2 ; 5
5\mathrm{cm} ; 5
18 dollars per day ; 18
x = 7 hours ; 7
3 theta ; 3\theta
\{1,2\} ; \{2,1\}
\{1,2\} ; 2, 1
1 \text{ or } 2 ; 2,1
(1,\frac12) ; (1, 0.5)
(1, 234) ; (1,234)
[0,\infty) ; [0, \infty)
(1,2),(3,4) ; (3,4), (1,2)
(-\infty,2)\cup(3,\infty) ; (-\infty, 2) \cup (3, +\infty)
(-\infty,\frac42)\cup(3,\infty) ; (-\infty,2)\cup(3,\infty)
1\pm\sqrt{19} ; 1-\sqrt{19}, 1+\sqrt{19}
\{1\pm\sqrt{5},-2\} ; \{-2, 1+\sqrt{5}, 1-\sqrt{5}\}
\begin{pmatrix}1/5\\-18/5\end{pmatrix} ; \begin{pmatrix} 0.2 \\ -3.6 \end{pmatrix}
x=3 ; 3
(x,y)=(1,2) ; (1,2)
x = 1\pm\sqrt{2} ; 1+\sqrt{2}, 1-\sqrt{2}
x=3 ; x = \frac{6}{2}
f(x)=2 x ; f(x) = x\cdot 2
f(x)=2x ; 2x
x \in (0,1) ; (0,1)
a=2$, $a=-6 ; a=-6, a=2
\text{even} ; Even
\text{No solution} ; no solution
\text{(A)} ; A
(A) ; A
T_{\text{max}} ; T_{max}
\mathrm{x}+1 ; x+1
x_1 ; x_{1}
\dot{x}+1 ; 1+x'
x(x+1) ; x^2+x
50\% ; 50
1,234 ; 1234
x**2 ; x^2
x^(1/2)\cdot 2 ; 2x^{\frac{1}{2}}
√2 ; \sqrt{2}
np.arcsin(10/13) ; \arcsin\frac{10}{13}
2M_{\odot} ; M_\odot\cdot 2
2π ; 2\pi
y' + 1 ; 1 + y^{\prime}
0.333333 ; \frac{1}{3}
-3.141593 ; -\pi
k \geq 2 ; [2, \infty)
k \geq 2 ; 2 \leq k
x<3 ; (-\infty,3)
-1 \le x < 2 ; [-1,2)
2>x\ge -1 ; -1 \leqslant x < 2
5 percent ; 5
0.\overline{3} ; \frac13
-0.1\overline{6} ; -\frac16
2 1/2 ; 2.5
\emptyset ; \varnothing
\cos 60^\circ ; \frac12
2\sin^2(45^{\circ}) ; 1
\operatorname{sin}(2x) ; \sin(2x)
1,234 dollars ; 1234
5 feet squared ; 5
5 times ; 5
x=2+3=5 ; 5
"""
DIFFERENT = r"""
\frac{x+1}{2} ; x+1
x^2-1 ; (x-1)(x+2)
(-1,6) ; -2
(-1,6) ; (-1,7)
(1,2) ; (2,1)
(2,1) ; (3,1)
(1,2,3) ; (1,2)
(1,2,3), (1,3,2) ; (1,1), (3,2)
(-\infty,2) ; (2,\infty)
(-\infty,2)\cup(3,\infty) ; (-\infty,2)\cup(4,\infty)
(2,12)\cup(12,102) ; 5
(0,1)\cup 3 ; (0,1)\cup 4
\{1,2\} ; 1,2,3
1\pm\sqrt{19} ; 1+\sqrt{19}
3-4i ; 3+4i
2\sqrt{3} ; 3\sqrt{2}
\sqrt{4} ; -2
\sqrt{2}+\sqrt{3} ; \sqrt{5}
x_{1}+1 ; x_{2}+1
6r^2-4r-24 ; 1
2^{10} ; 1025
2^{1009} ; 2^{1008}
100! ; 99!
\frac12 ; 2
\frac{\pi}{6} ; \frac{\pi}{3}
\pi ; 3.14
10^{-9} ; 2\cdot 10^{-9}
1.6\times 10^{-19} ; 9.1\times 10^{-31}
4.5e33 ; 4.5e32
0 ; 10^{-7}
A ; B
AB ; ABC
\text{even} ; \text{odd}
\text{BAC} ; \text{ABC}
\text{even} ; 2
east ; 12
2n ; 3
5\text{ cm} ; 7
5 cm ; 7
18 dollars ; 17
2 xyz ; 3
12 hours and 30 minutes ; 12
1.5 million ; 3
\sin(3x) ; \sin(2x)
\cos x ; \sin x
\log_2 8 ; \log_8 2
\ln 2 ; \ln 3
|x-2| ; x-2
\lfloor x \rfloor ; x
\binom{2n}{n} ; \binom{2n}{2}
x=3 ; x=4
x=3 ; 4
y=-2x ; y=2x
x=3 ; y=3
k > 2 ; n > 2
\frac{dx}{dt}=2 ; \frac{dy}{dt}=2
v_{o}+\frac{dv}{dt}=q ; ml\ddot{\theta}(t)-mg\sin\theta(t)=f
n=k+4 ; f(x)=\frac{1}{x}
f(x)=2x ; f(x)=x^2
k \geq 2 ; 2
k \geq 2 ; k=2
k \geq 2 ; k \geq 3
k > 2 ; k < 2
k > 2 ; (3, \infty)
x \neq 2 ; 2
2x+y<3 ; 3
0.3333 ; \frac{1}{3}
2.7778\cdot 10^{-6} ; 2.77\cdot 10^{-6}
5x-7y=0 ; 4
\begin{pmatrix}1\\2\end{pmatrix} ; \begin{pmatrix}2\\1\end{pmatrix}
50\% ; 0.4
1,234 ; 1235
27,54,108 ; 27,54
e^{-at} ; e^{-bt}
I(0)e^{-t} ; 2+t
5 percent ; 0.04
\infty ; 5
[0,\infty) ; [0,5)
\neq 3 ; 3
\le 3 ; 3
4=5 ; 5
4=5 ; 4
1000=1001 ; 1001
3 and a half miles ; 3
x=4=5 ; 5
4\to 5 ; 5
5 \Rightarrow 4 ; 5
2 1/2 ; 10.5
0.\overline{3} ; 0.3
\cos 60^\circ ; \frac13
"""
TWO_WAYS_EQUAL = r"""
50\% ; 0.5
5 cm ; 5
xy ; yx
BAC ; ABC
b ; B
\log 100 ; 2
y=2x ; x=\frac{y}{2}
x+y=2 ; 2x+2y=4
1/0 ; 1/0
x=50\% ; 50
0^0 ; 1
1/2x ; \frac{1}{2x}
2^3^2 ; 64
\binom{-3}{2} ; 6
1,234 ; 1, 234
\sin x(x+1) ; \sin(x^2+x)
5 percent ; 0.05
5\text{ percent} ; 0.05
"""
"""Forms that people read in two ways, or that have no value everywhere: equal by math-verify."""
TWO_WAYS_DIFFERENT = r"""
\{1,2\} ; (1,2)
3!! ; 720
x^T ; x
1<2 ; \emptyset
[1,2] ; (1,2)
k > 2 ; k \ge 2
2.7778e-6 ; 2.7777e-6
2x+y<3 ; 4x+2y<6
x=5>3 ; 5
2 xyz ; 2
3 squared ; 3
x\to 5 ; x=5
\sin 60^\circ ; \sin 60
2x=4 ; x=2
2x=4 ; 3x=4
2x=y=4 ; 5
X=3 ; x=3
2x+y=4 ; x+2y=4
\frac{dx}{dt}=2 ; x'=2+0t
(0,1)\cup(1,2) ; (0,2)
\sqrt{x^2} ; x
(x^2)^{1/2} ; x
\ln(x^2) ; 2\ln x
\frac{|x|}{x} ; 1
\lfloor x/2 \rfloor ; \lfloor x/3 \rfloor
f(2x) ; 2f(x)
5+10^{-70} ; 5
\cos(10^{-40}) ; 1
\tan\frac{\pi}{2} ; \tan\frac{3\pi}{2}
(1\pm\sqrt{2}, 3) ; 2
\pm 1\pm\sqrt{2} ; 1+\sqrt{2}, -1-\sqrt{2}
20,50\% ; 50
\frac{1}{x-x} ; \frac{2}{x-x}
\frac{1}{\sqrt{2}\sqrt{2}-2} ; 3
\sqrt[3]{-8} ; -2
(-8)^{1/3} ; -2
|3+4i| ; 3
\ln(-1) ; 2
\{1,\ln(-1)\} ; \{1\}
\arcsin 2 ; 1
2 3 ; 6
2\frac{1}{3}^2 ; \frac{49}{9}
2^|3| ; 8
(-3)! ; 6
2+* ; 2
\frac(1)(2) ; 2
9^{9^{9}} ; 5
f(x,y) ; 2
\begin{vmatrix}1&2\\3&4\end{vmatrix} ; \begin{pmatrix}1&2\\3&4\end{pmatrix}
\begin{pmatrix}1\\2&3\end{pmatrix} ; \begin{pmatrix}1\\2&4\end{pmatrix}
\frac{dx}{dt} ; 2
\int x ; 2
\tanh x ; 2
\mathbb{R} ; 2
10:30 ; 2
5? ; 5
\operatorname{Re} z ; z
\sin x/2 ; 3
\sqrt12 ; 3
( ; 2
x^ ; 2
\infty cm ; \infty
\sqrt{f(2)^2} ; f(2)
"""
"""And those that differ by math-verify, or that it does not read."""


def told(found):
    return [part if isinstance(part, str) else srepr(part) for part in found]


@pytest.mark.parametrize("text", TEXTS)
def test_both_predictions_read_the_same(text):
    parse_latex_cached.cache_clear()
    quick = told(math_reading.read.__wrapped__(text))
    parse_latex_cached.cache_clear()
    assert quick == told(math_reading.read_by(PredictionMode.LL, text))


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("x^{2} + 5", "5", False),
        ("x^2 + 5", "5+x^{2}", True),
        ("\\sin^{2} x + 5", "5", False),
        ("100p^{\\frac{1}{2}}", "\\frac{1}{2}", False),
        ("1+10^{-17}", "1", False),
        ("\\pi+10^{-17}", "\\pi", False),
    ],
)
def test_a_part_of_an_answer_is_not_the_answer(a, b, same):
    assert equal(a, b) is same


def test_numbers_are_put_in_for_variables_only():
    assert same_tree._value(math_reading.read("x+1")[0])
    with pytest.raises(ValueError, match="no variable"):
        same_tree._value(math_reading.read("\\text{42}")[0])


@pytest.mark.parametrize(
    ("a", "b", "apart"),
    [
        *(("x+1", "x+2", True), ("x+1", "1+x", False), ("x+1", "y+1", True)),
        *(("10\\% + 3", "5", False), ("5", "10\\% + 3", False)),
        *(("(1,2)", "(1,3)", False), ("\\text{42}", "43", False), ("?", "5", False)),
    ],
)
def test_values_tell_expressions_apart(a, b, apart):
    assert same_tree._apart(math_reading.read(a), math_reading.read(b)) is apart


def equal_by_value(math, answer, truth):
    return math([f"\\boxed{{{answer}}}"], [truth])[0].correct


@pytest.fixture(scope="module")
def patient():
    """Return the verifier with time enough on a busy machine."""
    with get_verifier("math", workers=1, timeout=20.0) as verifier:
        yield verifier


def pairs(table):
    return [tuple(part.strip() for part in line.split(" ; ")) for line in table.strip().split("\n") if " ; " in line]


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (*pair, equal)
        for tables, equal in (((EQUAL, TWO_WAYS_EQUAL), True), ((DIFFERENT, TWO_WAYS_DIFFERENT), False))
        for table in tables
        for pair in pairs(table)
    ],
)
def test_by_hand(patient, a, b, equal):
    assert equal_by_value(patient, a, b) is equal
    assert equal_by_value(patient, b, a) is equal


def test_a_value_that_takes_all_the_time_is_not_equal(math):
    assert not equal_by_value(math, "5^{-10^{30}}", "0")
    assert not equal_by_value(math, "0", "5^{-10^{30}}")


def test_a_letter_after_a_number_is_a_unit_unless_the_truth_has_letters(patient):
    assert equal_by_value(patient, "6m", "6")
    assert not equal_by_value(patient, "6", "6m")


def test_a_rounded_decimal_may_follow_an_equals_sign(patient):
    assert equal_by_value(patient, "\\sqrt{2}=1.414", "1.414")
    assert not equal_by_value(patient, "\\sqrt{2}=1.5", "1.5")


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        *("", "(" * 190, "1" + "+1" * 150, "\\sqrt{" * 60, "9^{" * 60, "x!" * 90, "2^{10^{9}}", "{" * 100 + "}" * 100),
        *(
            "\\exp(" * 9 + "9" + ")" * 9,
            "\\binom{9999}{" * 20,
            "|" * 300,
            "\\sin " * 70,
            "10^{20}!",
            "\\sin(10^{19})",
            "1e999999999",
        ),
    ],
)
def test_nothing_takes_long(math, answer):
    start = time.monotonic()
    assert not equal_by_value(math, answer, "77")
    assert time.monotonic() - start < 60


@pytest.mark.parametrize("form", ["%s", "-%s", "\\frac{1}{%s}", pytest.param("(%s, 2)", marks=pytest.mark.slow)])
def test_whole_numbers_are_compared_to_the_last_digit(math, form):
    a, b = (form % ("9" * 80 + last) for last in "12")
    assert not equal_by_value(math, a, b)
    assert equal_by_value(math, a, a)


names = st.sampled_from(["x", "y", "\\theta", "x_{1}"])
constants = st.one_of(st.integers(0, 30).map(str), st.sampled_from(["\\pi", "e", "i", "0.5"]))
atoms = st.one_of(constants, names)


def joined(inner):
    """Larger expressions; sums and products in brackets, so that a text says what it is made of."""
    pair = st.tuples(inner, inner)
    return st.one_of(
        pair.map(lambda p: f"({p[0]}+{p[1]})"),
        pair.map(lambda p: f"({p[0]}-{p[1]})"),
        pair.map(lambda p: f"({p[0]}\\cdot {p[1]})"),
        pair.map(lambda p: f"\\frac{{{p[0]}}}{{{p[1]}}}"),
        inner.map(lambda x: f"\\sqrt{{{x}}}"),
        inner.map(lambda x: f"\\sin({x})"),
        inner.map(lambda x: f"\\ln({x})"),
        inner.map(lambda x: f"e^{{{x}}}"),
        st.tuples(inner, st.integers(0, 3)).map(lambda p: f"({p[0]})^{{{p[1]}}}"),
    )


expressions = st.recursive(atoms, joined, max_leaves=4)
answers = st.one_of(
    expressions,
    st.lists(expressions, min_size=2, max_size=3).map(lambda parts: ",".join(parts)),
    st.lists(expressions, min_size=2, max_size=3).map(lambda parts: f"\\{{{','.join(parts)}\\}}"),
    st.lists(expressions, min_size=3, max_size=3).map(lambda parts: f"({','.join(parts)})"),
    expressions.map(lambda x: f"z={x}"),
)
relaxed = settings(
    max_examples=20,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.fixture(scope="module")
def apart():
    with get_verifier("answer_checks:apart", workers=1, timeout=1.0) as verifier:
        yield verifier


@pytest.fixture(scope="module")
def same():
    with get_verifier("answer_checks:same", workers=1, timeout=1.0) as verifier:
        yield verifier


@pytest.fixture(scope="module")
def finite():
    with get_verifier("answer_checks:finite", workers=1, timeout=1.0) as verifier:
        yield verifier


@pytest.mark.slow
@relaxed
@given(answers, answers)
def test_math_verify_never_finds_equal_what_differs(apart, same, a, b):
    if apart([a], [b])[0].correct:
        assert not same([a], [b])[0].correct


@pytest.mark.slow
@relaxed
@given(st.recursive(constants, joined, max_leaves=3), atoms, atoms)
def test_math_verify_finds_equal_what_is_the_same(patient, finite, a, b, c):
    turned, plain = f"({b})\\cdot({c})+({c})", f"({c})\\cdot({b}+1)"
    assume(all(verdict.correct for verdict in finite([a, plain], [a, plain])))
    for one, other in ((plain, turned), (f"z={plain}", turned), (f"({a},{plain},1)", f"({a},{turned},1)")):
        verdict = patient([f"\\boxed{{{one}}}"], [other])[0]
        assume("timed out" not in verdict.reason)
        assert verdict.correct


@pytest.mark.slow
@relaxed
@given(expressions, expressions)
def test_equal_expressions_never_differ(apart, a, b):
    pairs = (
        (f"{a}+{b}", f"{b}+{a}"),
        (f"({a})({b})", f"{b} \\cdot {a}"),
        (f"({a}+{b})^{{2}}", f"({a})^2+2({a})({b})+({b})^2"),
        (f"{a}-({b})", f"-({b}-({a}))"),
        (f"({a},{b})", f"( {a} , {b} )"),
        (f"\\{{{a},{b}\\}}", f"{b},{a}"),
        (f"z={a}", a),
    )
    assert not any(verdict.correct for verdict in apart(*zip(*pairs, strict=True)))


@pytest.mark.slow
@relaxed
@given(expressions, st.fractions(min_value=-9, max_value=9).filter(bool))
def test_what_is_added_makes_a_difference(patient, a, b):
    assert equal_by_value(patient, a, f"({a})+({b.numerator}/{b.denominator})") is not True
