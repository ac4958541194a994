"""Errors of a softmax over blocks: its powers of two, and sums that are scaled by them.

A running maximum is a whole number that cancels in the quotient of the sums. Where golden and exact
arithmetic round its argument differently they have different ones, one apart. So the numbers of
golden in between are estimated times 2^δ, where δ, 0 or 1, is what golden's maximum exceeds the
least one that it may have by. They are not above the estimate, and at least half of it.
"""

from __future__ import annotations

import numpy as np

from hw.numeric.formats import bf16
from sim.run.operation_errors import ROUNDING, SMALLEST_NORMAL, Estimate

__all__ = ["powers_estimate", "rescaled_estimate"]

#: Units in the last significant bit that exp2 may be off.
_EXP2_UNITS = 1.1
#: Numbers of golden may be half of their estimate, so what underflows counts twice.
_HALVED = 2.0
#: Rise beyond which golden scales by less than the rise.
_MOST_RISE = 254.0


def powers_estimate(
    scores: Estimate, old: Estimate, scale: float, function_bits: int
) -> tuple[Estimate, Estimate, Estimate]:
    """Estimates of the results of `sw.ir.nodes.Powers`: maxima, rises and powers.

    Parameters
    ----------
    scores : Estimate
        Rows × keys; -inf for what is hidden.
    old : Estimate
        Maxima, rows × 1.
    scale : float
    function_bits : int
    """
    factor = scale * np.log2(np.e)
    hidden = (scores.exact == -np.inf) & (scores.error == 0)
    known = hidden | np.isfinite(scores.exact)
    x = np.where(hidden, 0.0, factor * scores.exact)
    # The error of the score and the rounding of the factor.
    passed = np.where(hidden, 0.0, factor * scores.error)
    passed = passed + ROUNDING * (np.abs(x) + passed)
    of_maximum = (passed + ROUNDING * (np.abs(x) + passed)).max(axis=1, keepdims=True, initial=0)
    largest = np.where(hidden, -np.inf, x).max(axis=1, keepdims=True, initial=-np.inf)
    new = np.maximum(old.exact, np.ceil(largest - of_maximum))
    exponent = x - new
    argument = passed + ROUNDING * (np.abs(exponent) + 1 + passed)
    exact = np.exp2(exponent)
    error = exact * np.expm1(argument * np.log(2))
    magnitude = exact + error
    normal = np.maximum(magnitude, _HALVED * SMALLEST_NORMAL)
    error = error + _EXP2_UNITS * 2.0 ** (1 - function_bits) * normal
    smallest = 2.0 ** (1 - bf16.bias - bf16.fraction_bits)
    half = 2.0**-bf16.significand_bits * (exact + error)
    error = error + np.maximum(half, _HALVED * smallest / 2)
    sure = known.all(axis=1, keepdims=True) & (of_maximum <= 0.5)
    error = np.where(sure, np.where(hidden, 0.0, error), np.inf)
    nothing = np.zeros(new.shape)
    powers = Estimate(np.where(hidden, 0.0, exact), error)
    return Estimate(new, nothing), Estimate(new - old.exact, nothing), powers


def rescaled_estimate(sums: Estimate, rises: Estimate) -> Estimate:
    """Estimate of the result of `sw.ir.nodes.Rescale`."""
    scale = np.exp2(-rises.exact)
    lost = _HALVED * SMALLEST_NORMAL
    # Beyond the greatest rise golden scales by more than exact arithmetic does.
    beyond = (np.abs(sums.exact) + sums.error) * 2.0**-_MOST_RISE
    error = sums.error * scale + lost + np.where(rises.exact >= _MOST_RISE, beyond, 0.0)
    exact = np.where(sums.exact == 0, 0.0, sums.exact * scale)
    return Estimate(exact, np.where((sums.exact == 0) & (sums.error == 0), 0.0, error))
