"""Entropy change of every state by one update, with weights that states share."""

from entrostat import policy_stats
from entrostat.entropy_change import lemma1

from ..claims.shared_weights import EXPLAINED, STATES, left, of_all, update
from ..trial import Outcome, Parameter, trial

RUNS = 4
ALL, OWN = "all states'", "its own"


@trial(
    "shared-weights",
    Parameter(
        key="tokens",
        label="Tokens in the estimate",
        default=ALL,
        options=(ALL, OWN),
        help="The first order in shared weights has the tokens of all states, the flow of a table those of its own.",
    ),
    Parameter(
        key="features",
        label="Features",
        symbol="d",
        default=8,
        low=2,
        high=STATES,
        step=1,
        help=f"The logits are linear in so many; {STATES} are a table.",
    ),
    Parameter(
        key="log_eta",
        label="Size of the step",
        symbol="log₁₀ η",
        default=-2.0,
        low=-3.0,
        high=1.0,
        step=0.1,
        help="Logarithm of the learning rate.",
    ),
)
def shared_weights(tokens: str, features: int, log_eta: float) -> Outcome:
    """Entropy change of each of 64 states by the first update of four runs, against its estimate."""
    step = update(RUNS, features, 10**log_eta)
    before = policy_stats(step.logits)
    change = policy_stats(step.after).entropy - before.entropy
    estimate = lemma1(before.logp, of_all(step) if tokens == ALL else step.own)
    share = float(left(estimate, change).mean())
    x = 1000 * estimate.flatten().numpy()
    return Outcome(
        x=x,
        x_title="estimate (mnats)",
        predicted=x,
        measured=1000 * change.flatten().numpy(),
        y_title="change of entropy ΔH (mnats)",
        holds=share < EXPLAINED,
        because=f"the estimate leaves {share:.2g} of the squared error of guessing zero; a complete first order leaves "
        f"less than {EXPLAINED:g}.",
        points=True,
    )
