"""Cases of units at the network: switches, compute units, memory units."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from gen.export.bus_ports import BusGroup
from hw.arch.config import ChipConfig
from hw.arch.ports import SwitchPorts
from sim.drivers.pcu_case import random_case
from sim.drivers.pmu_case import PmuSizes, matrix_case
from sim.drivers.pmu_index_case import gather_case, scatter_case
from sim.drivers.switch_case import SwitchCase, switch_port_name
from sim.export.cases.result_vectors import integers
from sim.export.core_case import CoreCase

__all__ = ["pcu_cases", "pmu_cases", "switch_cases"]

_PROGRAMS = 3

Groups = Sequence[BusGroup]


def switch_cases(
    rng: np.random.Generator, groups: Groups, values: Mapping[str, int]
) -> Iterator[CoreCase]:
    """Random multicasts and ordered merges.

    Parameters
    ----------
    rng : numpy.random.Generator
    groups : sequence of BusGroup
    values : mapping of str to int
        Parameters of the component.
    """
    ports = SwitchPorts(values["tracks"], values["unit_outputs"], values["unit_inputs"])
    for number in range(_PROGRAMS):
        program = SwitchCase(rng, ports, values.get("width_bits", 0), rounds=3)
        case = CoreCase(f"program_{number}", groups)
        case.set(i_clear=1, config=program.config, cycles=2)
        case.set(i_clear=0)
        case.exchange(
            {switch_port_name("i", port): sent for port, sent in program.sends.items()},
            {switch_port_name("o", port): taken for port, taken in program.expected.items()},
        )
        yield case


def pcu_cases(rng: np.random.Generator, groups: Groups, chip: ChipConfig) -> Iterator[CoreCase]:
    """Random programs: products, lanes, both, parts of fused softmax.

    Parameters
    ----------
    rng : numpy.random.Generator
    groups : sequence of BusGroup
    chip : ChipConfig
    """
    for number in range(2 * _PROGRAMS):
        found = random_case(rng, chip)
        case = CoreCase(f"program_{number}", groups)
        case.set(i_clear=1, i_run=0, config=found.program.pack(chip.pcu.lanes))
        case.set(i_clear=0, i_run=1, cycles=0)
        case.exchange(
            {f"i_{port.name.lower()}": integers(words) for port, words in found.streams.items()},
            {"o_result": integers(found.results)},
        )
        yield case


def pmu_cases(
    rng: np.random.Generator, groups: Groups, values: Mapping[str, int]
) -> Iterator[CoreCase]:
    """Matrices through rings of slots, a gather and a scatter.

    Parameters
    ----------
    rng : numpy.random.Generator
    groups : sequence of BusGroup
    values : mapping of str to int
        Parameters of the component.
    """
    sizes = PmuSizes(values["width_bits"], values["capacity_bytes"], values["slots"])
    for name, drawn in (
        ("matrices", matrix_case),
        ("gather", gather_case),
        ("scatter", scatter_case),
    ):
        found = drawn(rng, sizes)
        case = CoreCase(name, groups)
        case.set(i_clear=1, i_run=0, config=found.program.pack(**sizes._asdict()))
        case.set(i_clear=0, i_run=1, cycles=0)
        sent = {f"i_stream__{n}": integers(each.words) for n, each in enumerate(found.inputs)}
        taken = {f"o_stream__{n}": integers(each.words) for n, each in enumerate(found.outputs)}
        taken |= {f"o_token__{n}": [0] * count for n, count in enumerate(found.tokens)}
        case.exchange(sent, taken)
        case.expect(o_done=15, o_error=found.error)
        yield case
