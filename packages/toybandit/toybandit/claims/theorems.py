"""Theorems behind the claims, with a derivation in about three lines, and their symbols; the report prints both.

A claim measures at most one theorem. A theorem of ours has a test that states it; a claim without is tested in the file
of its module.
"""

from dataclasses import dataclass

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
    derivation: tuple[str, ...]
    """Lines of the derivation."""
    test: str = ""
    """File of the test in TESTS."""


def symbols() -> str:
    """Return the symbols as a Markdown section."""
    rows = [f"| {symbol} | {meaning} |" for symbol, meaning in SYMBOLS.items()]
    return "\n".join(["## Symbols", "", "| symbol | meaning |", "| --- | --- |", *rows]) + "\n"


def derived(theorem: Theorem | None, module: str, root: str) -> list[str]:
    """Return the lines of a claim's page entry on its test, and the derivation if it has a theorem.

    module: where the claim is. root: path from the page to the repository's root.
    """
    if theorem is None:
        package, _, last = module.rpartition(".")
        own = package == "toybandit.claims"
        return [f"- **Tested in** [test_{last}.py]({root}/{OTHERS}/test_{last}.py)"] if own else []
    test = f"; tested in [{theorem.test}]({root}/{TESTS}/{theorem.test})" if theorem.test else ""
    return [f"- **Derivation** ({theorem.name}{test}):", *(f"    - {line}" for line in theorem.derivation)]
