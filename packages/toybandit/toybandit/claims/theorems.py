"""Theorems behind the claims: their symbols, a derivation in about three lines, and the test that states each.

The report prints these. A claim belongs to at most one theorem; one without is tested in the file of its module.
"""

from dataclasses import dataclass

from .registry import CLAIMS

TESTS = "tests/theory"
"""Folder of the theorems' tests, in the repository."""
OTHERS = "tests/toybandit/claims"
"""Folder of the tests of claims without a theorem, test_MODULE.py."""

SYMBOLS: dict[str, str] = {
    "z, p, K": "logits of a state, (K,), its policy p = softmax(z), and the number of arms",
    "H, lp": "entropy −Σ p log p in nats, and log p of a sampled token",
    "η, Δz": "step size, and the change of the logits; ΔH is the change of H",
    "A, ρ": "advantage, and the expected reward of a state; a binary reward R has A = R − ρ",
    "π, π_old, r": "current and sampling policy, and their ratio π/π_old",
    "w": "weight of a token, A·r, 0 where it is clipped",
    "f_a": "p_a(log p_a + H), so that ∂H/∂z_a = −f_a and Σf_a = 0",
    "S2, S2L": "Σp² and Σp² log p; E_p[f] = S2L + H·S2",
    "Ω": "STEER's estimate of ΔH, its equation 8",
    "P, M, λ*": "sums of the flows that raise and that lower H, and OPEFO's weight",
    "e, S": "H − H*, the error from the target, and the sum of errors",
    "g, d": "fall of H per unit of α, and its drift without control; α = Kp·e + Ki·S",
    "s, c": "g·Kp and g·Ki",
    "ε, β": "distance of a clip bound from the ratio 1, and the coefficient of a penalty or bonus",
    "τ, k": "probability from which EntroPIC's α acts on a token, and the share of tokens that a rule acts on",
}
"""Meaning of each symbol."""


@dataclass(frozen=True, kw_only=True)
class Theorem:
    """Statement of a paper, or ours, that claims test."""

    name: str
    test: str
    """File of the test in TESTS."""
    derivation: tuple[str, ...]
    """Lines of the derivation."""
    claims: tuple[str, ...]
    """Names of the claims that measure it."""


THEOREMS = (
    Theorem(
        name="Entropy Mechanism, lemma 1",
        test="test_entropy_mechanism_lemma_1.py",
        derivation=(
            "∂H/∂z_a = −p_a(log p_a + H) = −p_a(log p_a − E_p[log p]).",
            "⟨∂H/∂z, Δz⟩ = −Σ p_a(log p_a − E_p[log p])·Δz_a = −Cov_p(log p, Δz).",
            "Taylor's remainder is of second order; its constant grows with ln K.",
        ),
        claims=("lemma1-order", "lemma1-remainder"),
    ),
    Theorem(
        name="Entropy Mechanism, proposition 1 and theorem 1",
        test="test_entropy_mechanism_theorem_1.py",
        derivation=(
            "∂E_p[A]/∂z_a = Σ_b p_b A_b(1[a = b] − p_a) = p_a(A_a − E_p[A]).",
            "With E_p[A] = 0 the step is Δz = η·p·A; lemma 1 gives ΔH = −η·Cov_p(log p, p·A).",
            "Otherwise the formula has p·E_p[A] too much, and Cov_p(log p, p) is not 0.",
        ),
        claims=("thm1-centred", "thm1-any-advantage"),
    ),
    Theorem(
        name="Entropy Mechanism, theorem 2",
        test="test_entropy_mechanism_theorem_2.py",
        derivation=(
            "F = diag(p) − p·pᵀ, so F·A = p(A − E_p[A]), which is the gradient of E_p[A].",
            "F⁺ gives A up to a constant, which does not move p: Δz = η·A.",
            "Lemma 1 gives ΔH = −η·Cov_p(log p, A), for any baseline.",
        ),
        claims=("thm2-natural-gradient",),
    ),
    Theorem(
        name="Entropy Mechanism, equation 6",
        test="test_entropy_mechanism_equation_6.py",
        derivation=(
            "From R = −a·e^H + b, dR/dH = −a·e^H; at H = 0 the ceiling is R = b − a.",
            "Two arms that pay 1 and 0 have dR/dH = −1/ln(p/(1−p)), which goes to 0 as p goes to 1.",
            "So the law is too high at the end: the last of the entropy earns less than a.",
        ),
        claims=("law-fit", "law-algorithms", "law-prediction"),
    ),
    Theorem(
        name="Entropy Mechanism, equation 7",
        test="test_entropy_mechanism_equation_7.py",
        derivation=(
            "Theorem 1 with a response y for an action: ΔH = −η·Cov_y(log π(y), π(y)·A(y)).",
            "With a table for each token, its step is p_a·E[A | a], without the other tokens' probabilities.",
            "π(y) is a product of L probabilities, so the covariance shrinks with L and differs by state.",
        ),
        claims=("em-equation-7",),
    ),
    Theorem(
        name="Entropy Mechanism, equations 8 to 12",
        test="test_entropy_mechanism_equations_8_to_12.py",
        derivation=(
            "E_p[(lp − E lp)(A − E A)] is the covariance of theorem 2, by definition.",
            "A mini-batch of many states adds the covariance of their means, 0 if A is centred in each.",
            "∇_z D_KL(π_old ‖ π) = π − π_old, which is 0 if the two are equal.",
        ),
        claims=("clip-cov", "kl-cov", "kl-cov-on-policy"),
    ),
    Theorem(
        name="Revisiting Entropy, equations 3 and 4",
        test="test_revisiting_entropy_equations_3_and_4.py",
        derivation=(
            "∂ log p_a/∂z_b = 1[a = b] − p_b, so A > 0 raises the sampled logit and lowers the others.",
            "The probability of a rises by p_a[(1 − p_a)² + Σ_{b≠a} p_b²] per unit of η·A.",
            "That of another arm b falls by p_b(p_a + p_b − S2): it rises where p_a + p_b < S2.",
        ),
        claims=("pos-adv-reweight",),
    ),
    Theorem(
        name="STEER, theorem 1",
        test="test_steer_theorem_1.py",
        derivation=(
            "Assumption 1: Δz_a = η·w·(1 − p_a) for the sampled token alone (equation 14).",
            "Times ∂H/∂z_a = −p_a(lp + H): ΔH = −η·w·p_a(1 − p_a)(lp + H), with a factor p_a.",
            "The whole gradient, w(e_a − p), also moves the other logits and adds η·w·(S2L + H·S2 − p_a·f_a).",
        ),
        claims=("steer-thm1",),
    ),
    Theorem(
        name="STEER, four quadrants",
        test="test_steer_quadrants.py",
        derivation=(
            "Under assumption 1 ΔH has the sign of −A(lp + H), and lp + H > 0 where p > e^(−H).",
            "A > 0: likely tokens lower H (I), unlikely ones raise it (II). A < 0: the opposite (III, IV).",
            "With the whole gradient the boundary is p* ≥ e^(−H).",
        ),
        claims=("steer-sign", "four-quadrants", "four-quadrants-det"),
    ),
    Theorem(
        name="OPEFO, theorem 1",
        test="test_opefo_theorem_1.py",
        derivation=(
            "Under assumption 1 E_a[−p_a(lp + H)·A(1 − p_a)] = −E_p[A·p(1 − p)(log p + H)].",
            "Equation 6 has (1 − p)² in place of p(1 − p): a token counts (1 − p)/p times what it does.",
            "Its sign is that of assumption 1, with the boundary e^(−H).",
        ),
        claims=("opefo-thm1", "opefo-formula", "opefo-sign"),
    ),
    Theorem(
        name="OPEFO, zero net flow",
        test="test_opefo_zero_net_flow.py",
        derivation=(
            "(1 + λ)P = (1 − λ)M is linear in λ: λ* = (M − P)/(M + P), within ±1 if both are positive.",
            "The weights multiply each token's step, and first-order changes add.",
            "So exact flows cancel, ΔH = O(η²); the flows of equation 6 cancel in the formula alone.",
        ),
        claims=("opefo-one-step", "opefo-run"),
    ),
    Theorem(
        name="EntroPIC, corollary 4.1",
        test="test_entropic_corollary_4_1.py",
        derivation=(
            "The proof puts the same A⁺ for all arms into theorem 1; that A is not centred, and its step is 0.",
            "R is 1 with probability q_a: E[Δz_α] = p_a[(1+α)(1−ρ)q_a − (1−α)ρ(1−q_a)] − p_a·(its mean).",
            "= p_a(q_a − ρ)·[(1+α)(1−ρ) + (1−α)ρ]: the step for α = 0, times 1 + α(1 − 2ρ).",
        ),
        claims=("cor4.1-collinear", "cor4.1-signs", "tau-zero"),
    ),
    Theorem(
        name="EntroPIC, theorem 4.2",
        test="test_entropic_theorem_4_2.py",
        derivation=(
            "P: e⁺ = (1 − s)e + d rests at e = d/s, which is 0 only without drift.",
            "PI: V = e² + κS² has ΔV without a product e·S only for κ = c/(1 − c), positive if c < 1.",
            "ΔV = ((1 − s)²/(1 − c) − 1)e² − c²/(1 − c)·S² < 0 if (1 − s)² < 1 − c: sufficient, not necessary.",
        ),
        claims=("thm4.2-p-control", "thm4.2-fixed-point", "entropic-gains"),
    ),
    Theorem(
        name="EntroPIC, theorem 4.3",
        test="test_entropic_theorem_4_3.py",
        derivation=(
            "At rest e⁺ = e gives g·α = d. P: e = d/s. PI: S⁺ = S gives e = 0 and S = d/c.",
            "The loop's matrix [[1 − s − c, −c], [1, 1]] has determinant 1 − s and trace 2 − s − c.",
            "Jury: both poles are inside the unit circle if and only if 0 < s < 2, c > 0 and 2s + c < 4.",
        ),
        claims=(
            "thm4.3-pi-control",
            "thm4.3-off-policy",
            "thm4.3-on-policy",
            "pi-stability-linear",
            "pi-stability-exact",
        ),
    ),
    Theorem(
        name="Exact flow of a token",
        test="test_exact_flow_of_a_token.py",
        derivation=(
            "∂ log p_a/∂z = e_a − p, so a token's step is Δz = η·w·(e_a − p).",
            "⟨∂H/∂z, Δz⟩ = −η·w·(f_a − Σ p_b f_b) = −η·w·[p_a(lp + H) − (S2L + H·S2)].",
            "It is linear in w, so tokens add; E_a of the bracket is 0; it is 0 at p_a = p* ≥ e^(−H).",
        ),
        claims=("token-flow", "token-flows-add", "sign-boundary"),
    ),
)

THEOREM_OF = {claim: theorem for theorem in THEOREMS for claim in theorem.claims}
"""Theorem of each claim that has one."""


def symbols() -> str:
    """Return the symbols as a Markdown section."""
    rows = [f"| {symbol} | {meaning} |" for symbol, meaning in SYMBOLS.items()]
    return "\n".join(["## Symbols", "", "| symbol | meaning |", "| --- | --- |", *rows]) + "\n"


def derived(claim: str, root: str) -> list[str]:
    """Return the lines of a claim's page entry on its test, and the derivation if it has a theorem.

    root: path from the page to the repository's root.
    """
    theorem = THEOREM_OF.get(claim)
    if theorem is None:
        test = f"test_{CLAIMS[claim].check.__module__.rpartition('.')[2]}.py"
        return [f"- **Tested in** [{test}]({root}/{OTHERS}/{test})"]
    link = f"[{theorem.test}]({root}/{TESTS}/{theorem.test})"
    return [f"- **Derivation** ({theorem.name}; tested in {link}):", *(f"    - {line}" for line in theorem.derivation)]
