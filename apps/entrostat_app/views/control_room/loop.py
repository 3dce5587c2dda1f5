"""PI loop of `entropic`: its controls, its linear theory, and bandits under the same gains."""

from dataclasses import dataclass, replace

import numpy as np
import streamlit as st
import torch

from entrostat.numbers import pi_control
from toybandit import Config, Trajectory, simulate
from toybandit.local_plant import LocalPlant, local_plant, starting_at

from ...shared.controls import Control
from ...shared.simulations import identity

BY_HAND, BY_POLES = "by hand", "by poles"
GAINS = Control(
    key="pi.gains",
    label="Gains",
    default=BY_HAND,
    options=(BY_HAND, BY_POLES),
    help="By hand: choose Kp and Ki. By poles: choose the two poles of the loop; together with g they set the gains.",
)
KP = Control(
    key="pi.kp",
    label="Proportional gain",
    symbol="Kp",
    unit="per nat",
    default=2.8,
    low=0.0,
    high=25.0,
    step=0.1,
    help="α per nat of error.",
)
KI = Control(
    key="pi.ki",
    label="Integral gain",
    symbol="Ki",
    unit="per nat and step",
    default=0.2,
    low=0.0,
    high=10.0,
    step=0.05,
    help="α per nat of summed error. 0 is P control, which leaves an error of d/(g·Kp).",
)
POLES = tuple(
    Control(
        key=f"pi.p{number}",
        label=f"{name} pole",
        symbol=f"p{index}",
        default=default,
        low=0.0,
        high=0.99,
        step=0.01,
        help="Factor by which this pole's part of an error shrinks per step: 0 removes it at once, .9 leaves a tenth "
        "after 22 steps.",
    )
    for number, (name, index, default) in enumerate(
        zip(("First", "Second"), "₁₂", pi_control.POLES, strict=True), start=1
    )
)
PLANT_GAIN = Control(
    key="pi.g",
    label="Plant gain",
    symbol="g",
    unit="nats per unit of α",
    default=0.1,
    low=0.005,
    high=0.5,
    step=0.005,
    help="Fall of the entropy in one rollout step with α = 1.",
)
LOOP = (
    Control(
        key="pi.d",
        label="Drift",
        symbol="d",
        unit="nats per step",
        default=-0.04,
        low=-0.1,
        high=0.1,
        step=0.005,
        help="Change of the entropy per step without control. Below 0, the entropy falls by itself.",
    ),
    Control(
        key="pi.error",
        label="Initial error",
        symbol="e₀",
        unit="nats",
        default=0.5,
        low=-0.5,
        high=1.0,
        step=0.05,
        help="Entropy minus target at the start.",
    ),
    Control(
        key="pi.alpha_max",
        label="Bound",
        symbol="α_max",
        default=1.0,
        low=0.1,
        high=5.0,
        step=0.1,
        help="α is clipped to ± this value. At 1, the weights 1 ± α are never negative.",
    ),
    Control(
        key="pi.anti_windup",
        label="Anti-windup",
        default=True,
        help="The sum of errors stops while α is at its bound and the error would drive it further.",
    ),
    Control(
        key="pi.band",
        label="Settling band",
        unit="nats",
        default=0.05,
        low=0.01,
        high=0.2,
        step=0.01,
        help="The loop has settled once the error stays within ± this value.",
    ),
    Control(
        key="pi.steps",
        label="Steps",
        unit="rollouts",
        default=100,
        low=20,
        high=300,
        step=20,
        help="Length of the step responses.",
    ),
)
BANDIT = (
    Control(
        key="pi.env",
        label="Bandit",
        default="exact",
        options=("exact", "noisy"),
        help="exact: one state and the expected gradient, so nothing is random. noisy: 16 states, 16 sampled responses "
        "each, 2 updates per rollout.",
    ),
    Control(
        key="pi.target",
        label="Target entropy",
        symbol="H*",
        unit="nats",
        default=1.0,
        low=0.2,
        high=1.6,
        step=0.05,
        help="Entropy that the controller should hold.",
    ),
    Control(
        key="pi.lr",
        label="Learning rate",
        symbol="η",
        default=2.0,
        low=0.2,
        high=4.0,
        step=0.1,
        help="Step size on the mean gradient of a state. The plant gain grows with it.",
    ),
    Control(
        key="pi.tau",
        label="Threshold",
        symbol="τ",
        default=0.5,
        low=0.0,
        high=0.95,
        step=0.05,
        help="Only tokens more likely than this are weighted. At 0, on-policy and with binary rewards (as in exact), α "
        "rescales the step but cannot change its direction: no control authority. There is none either if no token is "
        "more likely than τ.",
    ),
    Control(
        key="pi.seed",
        label="Seed",
        default=0,
        low=0,
        step=1,
        help="First of the four seeds that run side by side in noisy; exact has no randomness.",
    ),
)
SETTINGS: dict[str, dict[str, int]] = {"exact": {}, "noisy": {"states": 16, "passes": 2}}
RUNS = {"exact": 1, "noisy": 4}
"""Number of seeds that run side by side."""
MEASURED_OVER = {"exact": 1, "noisy": 16}
"""Number of seeds over which the plant is measured."""


@dataclass(frozen=True, kw_only=True)
class Loop:
    """Settings of the loop; symbols as in `entrostat.numbers.pi_control`."""

    g: float
    kp: float
    ki: float
    d: float = 0.0
    error: float = 0.5
    alpha_max: float = 1.0
    anti_windup: bool = True
    band: float = 0.05
    steps: int = 100

    @property
    def point(self) -> tuple[float, float]:
        """(g·Kp, g·Ki), which determine stability."""
        return self.g * self.kp, self.g * self.ki

    @property
    def poles(self) -> np.ndarray:
        """Poles of the loop, complex (2,)."""
        return pi_control.poles(self.g, self.kp, self.ki).numpy()

    def in_plant(self, plant: LocalPlant) -> "Loop":
        """Return the same controller on another plant."""
        return replace(self, g=plant.gain, d=plant.drift)

    def response(self) -> pi_control.Response:
        """Return the response of the linear loop, (steps + 1,) each."""
        return pi_control.response(
            self.g,
            self.kp,
            self.ki,
            error=self.error,
            drift=self.d,
            alpha_max=self.alpha_max,
            anti_windup=self.anti_windup,
            steps=self.steps,
        )


@dataclass(frozen=True, kw_only=True)
class Bandit:
    """Settings of the bandit under the loop."""

    env: str
    target: float
    lr: float
    tau: float
    seed: int

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the runs side by side."""
        return tuple(range(self.seed, self.seed + RUNS[self.env]))

    def config(self, loop: Loop, **args: bool) -> Config:
        """Return this bandit under the loop's controller, starting at the initial error.

        args: other hyperparameters of the controller. Raises ValueError if no policy has the initial entropy.
        """
        gains = {} if args.get("auto") else {"kp": loop.kp, "ki": loop.ki}  # self-tuning ignores them
        given = {**gains, "tau": self.tau, "alpha_max": loop.alpha_max}
        config = Config(
            env=self.env,
            lr=self.lr,
            controller="entropic",
            target=self.target,
            controller_args={**given, "anti_windup": loop.anti_windup, **args},
            rollouts=loop.steps,
            **SETTINGS[self.env],  # type: ignore[arg-type]
        )
        return starting_at(config, self.target + loop.error, self.seeds)


def draw_loop() -> Loop:
    """Draw the controls of the loop; return their settings."""
    mode = GAINS.draw()
    if mode == BY_POLES:
        first, second = (control.draw() for control in POLES)
        g = PLANT_GAIN.draw()
        kp, ki = (float(gain) for gain in pi_control.place_poles(g, first, second))
        st.caption(f"Kp = {kp:.3g} per nat, Ki = {ki:.3g} per nat and step.")
    else:
        kp, ki, g = (control.draw() for control in (KP, KI, PLANT_GAIN))
    return Loop(g=g, kp=kp, ki=ki, **{control.key.removeprefix("pi."): control.draw() for control in LOOP})


def draw_bandit() -> Bandit:
    """Draw the controls of the bandit; return their settings."""
    return Bandit(**{control.key.removeprefix("pi."): control.draw() for control in BANDIT})


@st.cache_resource(max_entries=64, show_spinner=False, hash_funcs={Config: identity})
def run(config: Config, seeds: tuple[int, ...]) -> Trajectory:
    """Return the trajectory, without its policies. Sessions share it: do not write to it."""
    return simulate(config, seeds)


@st.cache_data(max_entries=256, show_spinner=False)
def plant(env: str, lr: float, tau: float, entropy: float) -> LocalPlant:
    """Return g and d of a bandit at an entropy (nats), over fixed seeds that do not depend on the run's seeds.

    Raises ValueError if no policy has that entropy.
    """
    config = Config(env=env, lr=lr, controller_args={"tau": tau}, **SETTINGS[env])  # type: ignore[arg-type]
    return local_plant(config, entropy, range(MEASURED_OVER[env]))


def errors_of(trajectory: Trajectory) -> np.ndarray:
    """Return entropy minus target, (runs, rollouts + 1), nats."""
    target = trajectory.target
    assert target is not None
    return trajectory.entropy - np.column_stack([target[:, :1], target])


def overshoot(errors: np.ndarray) -> float:
    """Return the largest distance of the errors (n,) from zero on the side opposite to the first error, nats."""
    return float(pi_control.overshoot(torch.as_tensor(errors)))


def ideal_gains(found: LocalPlant) -> tuple[float | None, float | None]:
    """Return (Kp, Ki) that give the measured plant the poles that `auto` aims at; None each if g is not positive."""
    if found.gain <= 0:
        return None, None
    kp, ki = pi_control.place_poles(found.gain)
    return float(kp), float(ki)
