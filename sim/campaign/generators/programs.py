"""Random programs: fields of a case, and cached compilation, operands and results."""

from __future__ import annotations

import dataclasses
import functools
import json
import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hw.arch.config import ChipConfig
from hw.numeric.formats import named as formats
from sim.campaign.case import Fields, line
from sim.campaign.generators.chips import chip_fields, chip_of
from sim.campaign.generators.kernel_table import KERNELS
from sim.campaign.generators.random_memory import random_memory
from sim.campaign.generators.random_operands import operands_of, random_operands
from sim.campaign.generators.random_sizes import random_schedule, random_sides
from sim.emulator import EmulatorRun, emulate
from sim.golden import golden
from sim.launch_memory import LaunchMemory
from sim.run.job import Problem
from sw.compiled import Compiled
from sw.language import Schedule

__all__ = ["Prepared", "Program", "prepared", "problem_of", "program_of", "random_program"]

Array = npt.NDArray[Any]

_LAUNCHES = (1, 1, 1, 1, 2, 2, 3, 4)


def random_program(
    rng: random.Random, chip: ChipConfig, *, most: int, launches: bool = True
) -> dict[str, Any]:
    """Draw the fields of a program for a chip.

    Parameters
    ----------
    rng : random.Random
    chip : ChipConfig
    most : int
        Largest extent.
    launches : bool
        Whether the launch list may have more than one entry.
    """
    name = rng.choice(list(KERNELS))
    entry = KERNELS[name]
    dtype = rng.choice([name for name in entry.dtypes if name in chip.pcu.formats])
    dims = entry.kernel.signature.dims
    fields: dict[str, Any] = {
        "chip": chip_fields(chip),
        "kernel": name,
        "dims": dict(zip(dims, random_sides(rng, chip, len(dims), most=most), strict=True)),
        "dtype": dtype,
        "out": rng.choice(entry.dtypes[dtype]),
        "schedule": {},
        "place_seed": rng.randint(1, 1000),
        "operands": random_operands(rng),
        "memory": random_memory(rng),
        "launches": rng.choice(_LAUNCHES) if launches else 1,
    }
    schedule = random_schedule(rng, problem_of(fields).program, chip, most=most)
    fields["schedule"] = {
        name: choices for name, choices in json.loads(schedule.to_json()).items() if choices
    }
    return fields


def problem_of(fields: Fields) -> Problem:
    """Build the problem of a program.

    Raises
    ------
    BadInputError
        If the program breaks a rule.
    """
    return Problem(
        kernel=KERNELS[fields["kernel"]].kernel,
        config=chip_of(fields["chip"]),
        dims=fields["dims"],
        dtype=formats[fields["dtype"]],
        out=formats[fields["out"]] if fields["out"] else None,
        schedule=Schedule(**fields["schedule"]),
        place_seed=fields["place_seed"],
    )


@dataclasses.dataclass(frozen=True)
class Program:
    """A compiled program with operands, golden and oracle results.

    Parameters
    ----------
    compiled : Compiled
    inputs, golden, oracle : mapping of str to array
    """

    compiled: Compiled
    inputs: Mapping[str, Array]
    golden: Mapping[str, Array]
    oracle: Mapping[str, Array]

    def memory(self, launches: int, seed: int) -> LaunchMemory:
        """Memory layout for a number of launches."""
        return LaunchMemory.of_kernel(self.compiled, seed=seed, launches=launches)


@functools.lru_cache(maxsize=16)
def _program(text: str) -> Program:
    fields = json.loads(text)
    compiled = problem_of(fields).compile()
    specs = [spec for spec in compiled.arrays if not spec.output]
    inputs = operands_of(fields["operands"], specs)
    dtypes = {spec.name: spec.format.dtype for spec in compiled.arrays if spec.output}
    with np.errstate(all="ignore"):
        bits = compiled.config.pcu.function_bits
        expected = golden(compiled.golden_program, inputs, function_bits=bits)
    return Program(compiled, inputs, expected, KERNELS[fields["kernel"]].oracle(inputs, dtypes))


def program_of(fields: Fields) -> Program:
    """Build the program of a case, cached.

    Raises
    ------
    BadInputError
        If the chip cannot run it.
    """
    kept = ("chip", "kernel", "dims", "dtype", "out", "schedule", "place_seed", "operands")
    return _program(line({name: fields[name] for name in kept}))


@dataclasses.dataclass(frozen=True)
class Prepared:
    """Memory before a launch list, and after its emulation.

    Parameters
    ----------
    program : Program
    place : LaunchMemory
    before, after : bytes
    emulated : EmulatorRun
    """

    program: Program
    place: LaunchMemory
    before: bytes
    after: bytes
    emulated: EmulatorRun

    def outputs(self, memory: bytes | bytearray) -> dict[str, Array]:
        """Outputs by name, read from memory after the launches."""
        return {name: self.place.read(memory, name) for name in self.program.golden}


def prepared(fields: Fields) -> Prepared:
    """Lay out a program in memory, and emulate its launch list.

    Raises
    ------
    BadInputError
        If the chip cannot run it.
    """
    program = program_of(fields)
    place = program.memory(fields["launches"], fields["operands"]["seed"])
    before = place.bytes_before(program.inputs)
    after = bytearray(before)
    emulated = emulate(
        program.compiled.config, after, list_address=place.list_address, entries=place.entries
    )
    return Prepared(program, place, bytes(before), bytes(after), emulated)
