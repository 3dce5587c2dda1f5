"""Random policies, and the derivative that the theorems are compared with.

Symbols, float64 throughout: z logits of a state (K,), p = softmax(z), H = −Σ p log p in nats, η a step size.
"""

from math import log

import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

theorem = settings(deadline=None, max_examples=50, print_blob=True)
"""Settings of every property: other examples in each run; a failure prints the line that repeats it."""
seeds = st.integers(0, 2**32 - 1)


@st.composite
def policies(draw: st.DrawFn, largest: int = 50_000, even: bool = True, rarest: int = 12) -> Tensor:
    """Logits of 2 to `largest` arms: uniform, with ties, random, or with one arm of 1 − p = 10⁻¹ to 10^−rarest.

    even=False: one arm is likelier than another, by at most 10^rarest, so that some flow of entropy is clearly not 0.
    """
    arms = draw(st.integers(2, min(64, largest)) | st.sampled_from([n for n in (2, 1000, 50_000) if n <= largest]))
    random = torch.Generator().manual_seed(draw(seeds))
    kind = draw(st.sampled_from(("random", "ties", "nearly certain", *("uniform",) * even)))
    if kind == "random":
        z = 3 * torch.randn(arms, generator=random, dtype=torch.float64)
        return z if even else z.clamp(min=float(z.max()) - rarest * log(10))
    if kind == "ties":
        z = torch.randint(0, 3, (arms,), generator=random).double()
        z[0] += 3.0 * (not even)
        return z
    z = torch.zeros(arms, dtype=torch.float64)
    if kind == "nearly certain":
        rest = 10.0 ** -draw(st.integers(1, rarest))
        z[0] = log((arms - 1) * (1 - rest) / rest)
    return z


def vector(z: Tensor, seed: int) -> Tensor:
    """Return a number in (−1, 1) for each arm."""
    return 2 * torch.rand(z.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) - 1


def row(*numbers: float) -> Tensor:
    """Return these numbers as a vector."""
    return torch.tensor(numbers, dtype=torch.float64)


def entropy(z: Tensor) -> Tensor:
    """Return H."""
    logp = torch.log_softmax(z, -1)
    return -(logp.exp() * logp).sum(-1)


def derivative(z: Tensor, step: Tensor) -> Tensor:
    """Return dH/dη along z + η·step at η = 0, by automatic differentiation."""
    return torch.func.jvp(entropy, (z,), (step,))[1]


def gradient(function, z: Tensor) -> Tensor:
    """Return the gradient of a function of the logits, by automatic differentiation."""
    return torch.func.grad(function)(z)


def mean(p: Tensor, x: Tensor) -> Tensor:
    """Return E_p[x]."""
    return (p * x).sum(-1)


def covariance(p: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return Cov_p(x, y)."""
    return mean(p, (x - mean(p, x)) * (y - mean(p, y)))


def same(found: Tensor, expected: Tensor) -> None:
    """Assert that two results differ by rounding alone."""
    torch.testing.assert_close(found, torch.as_tensor(expected).to(found), rtol=1e-9, atol=1e-12)
