"""Random memory conditions: latency, jitter, stall probability per channel."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

from sim.native.conditions import CHANNELS, ErrorAt, MemoryConditions

__all__ = ["PLAIN", "conditions_of", "random_memory"]

_MOST_LATENCY, _MOST_JITTER = 400, 60
#: Highest stall probability of a single channel, and of several.
_MOST_STALL, _MOST_TOGETHER = 0.95, 0.7
#: Memory without delays, for shrunk cases.
PLAIN: Mapping[str, Any] = {"latency": 20, "jitter": 0, "stalls": [0.0] * len(CHANNELS), "seed": 1}


def random_memory(rng: random.Random) -> dict[str, Any]:
    """Draw memory conditions as plain data; stalls differ by channel, many are 0."""
    channels = len(CHANNELS)
    stalls = [0.0] * channels
    kind = rng.choice(["none", "all", "one", "each"])
    if kind == "all":
        stalls = [round(rng.uniform(0, _MOST_TOGETHER), 2)] * channels
    elif kind == "one":
        stalls[rng.randrange(channels)] = round(rng.uniform(0, _MOST_STALL), 2)
    elif kind == "each":
        stalls = [round(rng.choice([0.0, rng.uniform(0, _MOST_TOGETHER)]), 2) for _ in stalls]
    return {
        "latency": round(math.exp(rng.uniform(0, math.log(_MOST_LATENCY)))),
        "jitter": rng.choice([0, rng.randint(1, _MOST_JITTER)]),
        "stalls": stalls,
        "seed": rng.getrandbits(31),
    }


def conditions_of(
    given: Mapping[str, Any], errors: tuple[ErrorAt, ...] | None = None
) -> MemoryConditions:
    """Rebuild the conditions of `random_memory`, with planted errors."""
    return MemoryConditions(
        latency=given["latency"],
        jitter=given["jitter"],
        channel_stalls=tuple(given["stalls"]),
        seed=given["seed"],
        error=errors,
    )
