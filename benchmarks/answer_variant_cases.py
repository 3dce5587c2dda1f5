"""Right forms that no real truth has, and wrong answers close to them: (truth, question, answer) by rule."""

Made = tuple[str, str, str]


def _same(truth: str, question: str, *answers: str) -> list[Made]:
    return [(truth, question, answer) for answer in answers]


OWN: dict[str, list[Made]] = {
    "own: empty set": _same(
        "\\emptyset",
        "Find all real $t$ with $t^2 = -4$.",
        *("\\text{no solution}", "\\text{no real solutions}", "\\varnothing", "\\{\\}", "∅", "\\text{No solutions}"),
        *("\\text{There are no solutions}", "\\text{none}", "no solution"),
    ),
    "own: all but a point": _same(
        "(-\\infty,4)\\cup(4,\\infty)",
        "What is the domain of $\\frac{1}{x-4}$?",
        *(
            "\\mathbb R\\setminus\\{4\\}",
            "\\mathbb{R} \\setminus \\{4\\}",
            "x \\ne 4",
            "x \\neq 4",
            "\\mathbb{R}-\\{4\\}",
        ),
        *("\\{x \\in \\mathbb{R} : x \\neq 4\\}", "]-\\infty,4[\\cup]4,\\infty[", "x<4 \\text{ or } x>4"),
    ),
    "own: all real numbers": _same(
        "(-\\infty,\\infty)",
        "For which $x$ is $x^2+3$ positive?",
        *("\\mathbb{R}", "\\mathbb R", "\\text{all real numbers}", "x \\in \\mathbb{R}", "ℝ", "]-\\infty,\\infty["),
    ),
    "own: system": _same(
        "(3,-2)",
        "Solve $x+y=1$, $x-y=5$ for $(x,y)$.",
        *(
            "\\begin{cases} x=3 \\\\ y=-2 \\end{cases}",
            "x=3, y=-2",
            "x=3,\\ y=-2",
            "x=3 \\text{ and } y=-2",
            "(x,y)=(3,-2)",
        ),
        *("x = 3 \\quad y = -2", "\\begin{aligned} x&=3 \\\\ y&=-2 \\end{aligned}", "y=-2, x=3", "(x, y) = (3, -2)"),
    ),
    "own: unit": [
        *_same(
            "5\\text{ m}",
            "How long is the rope?",
            "500\\text{ cm}",
            "5 m",
            "5\\,\\mathrm{m}",
            "5\\text{ meters}",
            "5",
            "5000 \\text{ mm}",
        ),
        *_same("3\\text{ hours}", "How long does it take?", "180\\text{ minutes}", "3 hours", "3 h", "3\\,\\text{h}"),
        *_same(
            "3e8",
            "Give the speed of light in m/s.",
            "3\\times 10^8 \\text{ m/s}",
            "3 \\cdot 10^{8}\\,\\mathrm{m/s}",
            "300{,}000{,}000",
        ),
        *_same(
            "2.5\\text{ kg}",
            "What is its mass?",
            "2500\\text{ g}",
            "2.5\\,\\mathrm{kg}",
            "2.50 \\text{ kg}",
            "\\frac{5}{2}\\text{ kg}",
        ),
        *_same(
            "12\\text{ cm}^2",
            "What is its area?",
            "12\\,\\mathrm{cm}^2",
            "12 cm²",
            "12 \\text{ square centimeters}",
            "12 \\text{cm}^{2}",
        ),
    ],
    "own: option with its text": _same(
        "C",
        "What is $5+7$? (A) 10 (B) 11 (C) 12 (D) 13",
        *(
            "C. 12",
            "(C) 12",
            "\\textbf{(C) } 12",
            "\\text{C}",
            "option C",
            "C) 12",
            "\\text{(C)}\\ 12",
            "\\text{C: } 12",
        ),
    ),
    "own: vector": _same(
        "\\begin{pmatrix}2\\\\-7\\end{pmatrix}",
        "Find the vector.",
        *("\\langle 2,-7 \\rangle", "\\begin{bmatrix}2\\\\-7\\end{bmatrix}", "\\left\\langle 2, -7 \\right\\rangle"),
        *("\\begin{pmatrix} 2 \\\\ -7 \\\\ \\end{pmatrix}", "(2,-7)"),
    ),
    "own: two roots": _same(
        "-6,6",
        "Find all real solutions of $x^2=36$.",
        *(
            "\\pm 6",
            "x=\\pm6",
            "±6",
            "6, -6",
            "x=6 \\text{ or } x=-6",
            "\\{6,-6\\}",
            "x_1=6, x_2=-6",
            "x=-6,\\; x=6",
            "6 and -6",
        ),
    ),
    "own: percent": _same(
        "\\frac{1}{4}", "What is the probability?", "25\\%", "25%", "0.25", ".25", "¼", "25 \\text{ percent}"
    ),
    "own: angle": [
        *_same(
            "60^\\circ",
            "What is the angle?",
            "\\frac{\\pi}{3}",
            "60",
            "60°",
            "60 \\text{ degrees}",
            "\\frac{\\pi}{3} \\text{ radians}",
        ),
        *_same("\\frac{\\pi}{4}", "What is the angle?", "45^\\circ", "\\pi/4", "\\frac{1}{4}\\pi"),
    ],
    "own: logarithm, power": [
        *_same("\\ln 2", "Compute the integral.", "\\ln(2)", "\\ln{2}", "ln 2", "-\\ln\\frac{1}{2}"),
        *_same("2^{10}-1", "How many subsets are there?", "1023", "1{,}023"),
        *_same("ab", "What is the area?", "a \\cdot b", "b a", "ba", "a\\times b", "a*b"),
        *_same("2xyz", "What is the product?", "2 \\cdot x \\cdot y \\cdot z", "2zyx", "x y z \\cdot 2"),
    ],
    "own: line": _same(
        "y=3x-2", "What is the line?", "y = 3x - 2", "y=-2+3x", "3x-y=2", "y-3x=-2", "y = 3 \\cdot x - 2", "y+2=3x"
    ),
    "own: yes or no": _same("\\text{Yes}", "Is it possible?", "Yes", "yes", "\\text{yes}", "\\textbf{Yes}", "YES"),
    "own: time, ratio": [
        *_same("3:2", "What is the ratio?", "3 : 2", "3\\colon 2", "3\\text{ to }2", "3 to 2"),
        *_same("10\\text{:}30", "At what time?", "10:30"),
    ],
}

"""(truth, question, answer) of forms that no real truth has, by rule."""
WRONG_OWN: dict[str, list[Made]] = {
    "own: another unit": [
        *_same("5\\text{ m}", "How long is the rope?", "5\\text{ cm}", "50\\text{ cm}", "5\\text{ km}", "500"),
        *_same("60^\\circ", "What is the angle?", "60\\text{ rad}", "\\frac{\\pi}{6}", "60'"),
        *_same("3\\text{ hours}", "How long does it take?", "3\\text{ minutes}", "180", "30\\text{ minutes}"),
        *_same("12\\text{ cm}^2", "What is its area?", "12\\text{ cm}^3", "12\\text{ m}^2"),
    ],
    "own: empty set": _same(
        "\\emptyset", "Find all real $t$.", "0", "\\{0\\}", "\\mathbb{R}", "\\text{one solution}", "\\{\\emptyset\\}"
    ),
    "own: all but a point": _same(
        "(-\\infty,4)\\cup(4,\\infty)",
        "What is the domain?",
        "\\mathbb{R}",
        "x \\ne -4",
        "\\mathbb{R}\\setminus\\{4,5\\}",
        "x>4",
        "4",
    ),
    "own: system": _same(
        "(3,-2)", "Solve for $(x,y)$.", "x=-2, y=3", "x=3, y=2", "x=3", "(3,-2),(1,1)", "\\{3,-2,0\\}"
    ),
    "own: percent": _same(
        "\\frac{1}{4}", "What is the probability?", "25", "0.25\\%", "4", "\\frac{1}{4}\\%", "2.5\\%"
    ),
    "own: option": _same(
        "C", "What is $5+7$? (A) 10 (B) 11 (C) 12 (D) 13", "B. 12", "A", "(D) 12", "C, D", "A B C D", "not C"
    ),
    "own: two roots": _same("-6,6", "Find all real solutions of $x^2=36$.", "6", "-6", "\\pm 36", "6,6", "x^2=36"),
}
