"""Questions of our own, for the forms that real data sets have: (question, truth)."""

from llmtrain.data import Question

_ASKED = (
    ("Simplify $(w+3)(w-2)-(w-4)(w+5)$.", "14"),
    ("Compute $\\sqrt{2\\cdot 6\\cdot 3\\cdot 4}$.", "12"),
    ("What is $\\frac{5}{6}+\\frac{1}{4}$?", "\\frac{13}{12}"),
    ("Find all real $x$ with $\\frac{x-7}{x-2}<0$. Write the answer as an interval.", "(2,7)"),
    ("Solve $x^2-9=0$. List all solutions.", "-3,3"),
    ("Real numbers satisfy $p+q+r=0$. Compute $p^3+q^3+r^3-3pqr$.", "0"),
    ("Factor $x^2-16$.", "(x-4)(x+4)"),
    ("Expand $(y+6)(y-5)$.", "y^2+y-30"),
    ("Write $\\sin t+\\sqrt{3}\\cos t$ as $A\\sin(t+\\phi)$.", "2\\sin(t+\\pi/3)"),
    ("Let $K=\\sqrt{T-1}$ and $T=362$. Compute $\\left|(K-20)(K+1)+19K-K^2\\right|$.", "20"),
    ("A shop sells 84 pens for $3 each and 16 more for $2. How much money does it take in dollars?", "284"),
    ("Write $1331_{4}$ in base eight.", "175_{8}"),
    ("The angles of a triangle are $x$, $2x$ and $3x$. How large is the smallest, in degrees?", "30^{\\circ}"),
    ("Evaluate $\\log_2 32+\\binom{6}{2}$.", "20"),
    ("In how many ways can 5 people sit in a row if two of them, $A$ and $B$, sit together?", "48"),
)
QUESTIONS = [Question(asked, truth, source="own questions") for asked, truth in _ASKED]
