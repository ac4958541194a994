"""Cases of the testbench of an exported core, by component."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gen.export.bus_ports import BusGroup, BusKind
from hw.tpu.tensor_top import TensorTop
from sim.export.cases.barrier_cases import bank_cases, barrier_cases
from sim.export.cases.function_cases import function_cases
from sim.export.cases.matrix_cases import (
    matrix_unit_cases,
    systolic_cases,
    tensor_top_cases,
    tensor_unit_cases,
)
from sim.export.cases.network_cases import pcu_cases, pmu_cases, switch_cases
from sim.export.cases.tma_cases import MEMORY_BYTES, engine_cases, register_cases, unit_cases
from sim.export.core_case import CoreCase, port_record
from sim.export.core_request import CoreRequest

__all__ = ["core_vectors"]

_PAUSES = (0.0, 0.3, 0.8)
_IDLE_CYCLES = 50
#: Cases that depend on the parameters of a component of the table.
_BY_VALUES: dict[str, Any] = {
    "switch": switch_cases,
    "token_switch": switch_cases,
    "pmu": pmu_cases,
    "barrier": barrier_cases,
    "barrier_bank": bank_cases,
    "tma": engine_cases,
    "tma_unit": unit_cases,
    "tma_top": register_cases,
}


def _cases(
    rng: np.random.Generator, groups: Sequence[BusGroup], request: CoreRequest
) -> Iterator[CoreCase]:
    name = request.name
    if name in _BY_VALUES:
        yield from _BY_VALUES[name](rng, groups, request.values)
    elif name.startswith("fp_"):
        yield from function_cases(rng, groups, request)
    elif name == "systolic" and request.unit is not None:
        yield from systolic_cases(rng, groups, request.unit)
    elif name == "tensor_unit" and request.tensor is not None:
        yield from tensor_unit_cases(rng, groups, request.tensor)
    elif isinstance(request.component, TensorTop) and request.tensor is not None:
        yield from tensor_top_cases(rng, groups, request.tensor, request.component.instructions)
    elif name == "pcu" and request.chip is not None and request.chip.pcu.lanes:
        yield from pcu_cases(rng, groups, request.chip)
    elif name == "matrix_unit" and request.chip is not None:
        yield from matrix_unit_cases(rng, groups, request.chip)


def _idle(groups: Sequence[BusGroup]) -> CoreCase:
    """After reset, without input, no stream gives anything."""
    case = CoreCase("idle", groups)
    given = [
        group.inner for group in groups if group.kind is BusKind.AXI4_STREAM and group.is_manager
    ]
    case.set(cycles=_IDLE_CYCLES)
    case.exchange({}, {name: [] for name in given})
    return case


def core_vectors(
    request: CoreRequest, groups: Sequence[BusGroup], seed: int
) -> tuple[dict[str, Any], list[str]]:
    """Content of ``vectors.json``, and the names of the cases that compare results.

    Every core has the case that nothing happens without input.

    Parameters
    ----------
    request : CoreRequest
    groups : sequence of BusGroup
        Ports of the core.
    seed : int
        Seed of the random stimuli.
    """
    rng = np.random.default_rng(seed)
    found = list(_cases(rng, groups, request))
    ports = port_record(groups)
    if "memory" in ports:
        ports["memory_bytes"] = MEMORY_BYTES
    paused = ports["streams"] or "memory" in ports
    record = {
        "core": request.core,
        "seed": seed,
        "pauses": _PAUSES if paused else (0.0,),
        "ports": ports,
        "cases": [case.record() for case in (_idle(groups), *found)],
    }
    return record, [case.name for case in found]
