"""Texts about the control room's pictures, made from their numbers."""

import numpy as np

from entrostat.numbers import pi_control
from toybandit import Trajectory
from toybandit.local_plant import LocalPlant
from toybandit.sweep.measure import settling

from .loop import Loop, errors_of, overshoot


def why_unstable(loop: Loop) -> str | None:
    """Return the stability condition that fails, in words; None if the loop is stable."""
    if bool(pi_control.stable(loop.g, loop.kp, loop.ki)):
        return None
    s, c = loop.point
    if s == 0:
        return "g·Kp is 0: without a proportional part nothing damps the loop, and it oscillates or drifts forever"
    if c == 0 and s < 2:
        return (
            f"g·Ki is 0: the error shrinks, but stops at d/(g·Kp) = {loop.d / s:+.2f} nats, where α cancels the drift"
        )
    if s >= 2:
        return f"g·Kp = {s:.2f} is not below 2: each step corrects more than twice the error, so the error grows"
    return f"2·g·Kp + g·Ki = {2 * s + c:.2f} is not below 4: errors change sign in every step and grow"


def settles(errors: np.ndarray, band: float) -> str:
    """Return the number of steps after which the errors (n,) stay within ±band (nats), as text."""
    steps = float(settling(errors, band))
    return f"{steps:.0f} steps" if np.isfinite(steps) else "never"


def response(loop: Loop) -> str:
    """Return a description of the loop's response."""
    found, reason = loop.response(), why_unstable(loop)
    errors = found.error.numpy()
    steps = float(settling(errors, loop.band))
    past = overshoot(errors)
    saturated = int((found.alpha.abs() >= loop.alpha_max).sum())
    parts = [
        f"From {loop.error:+.2f} nats, the error {'stays' if np.isfinite(steps) else 'does not stay'} within "
        f"±{loop.band:g} nats after {min(steps, loop.steps):.0f} steps."
    ]
    if past > 1e-6 and past < 10:
        parts.append(f"It overshoots by {past:.3f} nats.")
    if saturated:
        parts.append(
            f"α is at its bound in {saturated} of the {loop.steps + 1} steps, in which the loop is not linear."
        )
    if reason:
        parts.append(f"Not stable: {reason}.")
    return " ".join(parts)


def stability(loop: Loop) -> str:
    """Return the stability of the gains, in words."""
    s, c = loop.point
    reason = why_unstable(loop)
    if reason:
        return f"These gains, at g·Kp = {s:.3g} and g·Ki = {c:.3g}, are outside the stable triangle: {reason}."
    room = min(2 / s, 4 / (2 * s + c))
    return (
        f"These gains, at g·Kp = {s:.3g} and g·Ki = {c:.3g}, are inside the stable triangle. Both are proportional to "
        f"g: the loop stays stable until the plant is {room:.1f} times as strong as assumed."
    )


def poles(loop: Loop) -> str:
    """Return the poles and their consequences, in words."""
    found = loop.poles
    size = float(np.abs(found).max())
    if abs(found[0].imag) > 1e-9:
        where = f"Poles at {found[0].real:.2f} ± {abs(found[0].imag):.2f}i"
    else:
        where = f"Poles at {found[0].real:.3g} and {found[1].real:.3g}"
    if size >= 1:
        return f"{where}: one is not inside the unit circle, so its part of an error never decays."
    kind = "errors oscillate as they decay" if abs(found[0].imag) > 1e-9 else "errors decay without oscillation"
    if abs(found[0].imag) <= 1e-9 and found.real.min() < -1e-9:
        kind = "the part of the negative pole changes sign in every step"
    tenfold = np.log(0.1) / np.log(size) if size > 0 else 1.0
    slower = f"The slower part takes {max(tenfold, 1):.0f} steps to decay to a tenth."
    return f"{where}, inside the unit circle; {kind}. {slower}"


def bandit(trajectory: Trajectory, linear: Loop) -> str:
    """Return a comparison of the bandit with linear theory, in words."""
    errors, theory = errors_of(trajectory).mean(0), linear.response().error.numpy()
    gap = np.abs(errors - theory)
    worst, last = int(gap.argmax()), len(errors) // 5
    text = (
        f"Settling time within ±{linear.band:g} nats: {settles(errors, linear.band)}; by linear "
        f"theory, with g and d measured at the target: {settles(theory, linear.band)}. They differ "
        f"most at rollout {worst}, by {gap[worst]:.3f} nats. "
        f"Over the last fifth the error is {errors[-last:].mean():+z.3f}"
    )
    if linear.g < 0.1 * abs(linear.d):
        return f"{text}. α has hardly any effect here: g is {linear.g:.4f} and the drift {linear.d:+z.3f}."
    return f"{text}, by theory {theory[-last:].mean():+z.3f}."


def windup(errors: dict[str, np.ndarray]) -> str:
    """Return the overshoot with and without anti-windup, in words."""
    stops, goes = (overshoot(np.nan_to_num(x)) for x in errors.values())
    text = f"The error overshoots by {stops:.3f} nats when the sum stops, and by {goes:.3f} when it goes on."
    if goes - stops < 1e-6:
        return f"{text} α is not at its bound long enough to matter: lower its bound or raise the initial error."
    return text


def auto(runs: dict[str, Trajectory], loop: Loop, found: LocalPlant) -> str:
    """Return the result of self-tuning, in words."""
    estimate = runs["auto"].metrics["entropic/plant_gain"].mean(0)
    settled = {name: settles(errors_of(run).mean(0), loop.band) for name, run in runs.items()}
    return (
        f"The estimate of g goes from {estimate[0]:.3f} to {estimate[-1]:.3f}; measured on fresh policies at "
        f"the target it is {found.gain:.3f}. Settling time within ±{loop.band:g} nats: {settled['auto']} with "
        f"self-tuned gains, "
        f"{settled['these gains']} with Kp = {loop.kp:.3g} and Ki = {loop.ki:.3g}."
    )
