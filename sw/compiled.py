"""A compiled kernel: images of its parts, choices, predictions, text after each pass."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError, did_you_mean
from hw.arch.unit_kind import UNIT_KINDS
from hw.numeric.formats import Format
from sw.array_spec import ArraySpec
from sw.compiled_part import CompiledPart
from sw.ir.program import Program
from sw.language import Schedule
from sw.parts.part import PartLaunch, in_order
from sw.timing.list_prediction import ListPrediction, predict_list
from sw.timing.prediction import LATENCY

__all__ = ["Compiled"]

#: Launches, and the share of the cycles in which no unit is busy, from which on a report says so.
_MANY_LAUNCHES, _MUCH = 8, 0.5


@dataclasses.dataclass(frozen=True)
class Compiled:
    """Result of a compilation: parts that run one after another in one launch list.

    Parameters
    ----------
    kernel : str
    config : ChipConfig
    dims : mapping of str to int
    options : mapping of str to value
        Every option of the kernel, defaults included.
    dtype, out : Format
        Formats of the first operand and of the first result.
    operands : str
        Formats of the operands as text.
    arrays : tuple of ArraySpec
        Arguments of the kernel, in order.
    golden_program : Program
        The program after `online`, which fixes orders of sums and arithmetic.
    schedule : Schedule
        Every choice, the compiler's included.
    parts : tuple of CompiledPart
    intermediates : tuple of ArraySpec
        Arrays that a part writes and later ones read.
    macs : int
        Multiply-accumulates without those on padding.
    peak_macs_per_cycle : int
        Peak of the whole chip.
    notes : tuple of str
        Hints of the program that were overruled, and better plans that were given up.
    texts : mapping of str to str
        Text form after each pass.
    """

    kernel: str
    config: ChipConfig
    dims: Mapping[str, int]
    options: Mapping[str, Any]
    dtype: Format
    out: Format
    operands: str
    arrays: tuple[ArraySpec, ...]
    golden_program: Program
    schedule: Schedule
    parts: tuple[CompiledPart, ...]
    intermediates: tuple[ArraySpec, ...]
    macs: int
    peak_macs_per_cycle: int
    notes: tuple[str, ...]
    texts: Mapping[str, str]

    def prediction(self, latency: int = LATENCY) -> ListPrediction:
        """Predicted cycles of the launch list at a memory latency.

        Parameters
        ----------
        latency : int
            Latency of the memory in cycles.
        """
        return predict_list(
            [
                self.parts[number].prediction(latency, launch.repeat)
                for number, launch in self.launches
            ]
        )

    def cycles_beside(self, other: Compiled) -> int:
        """Predicted cycles of the launches of those parts that another form of the kernel lacks."""
        known = {(each.part.program, each.part.arrays) for each in other.parts}
        found = [
            self.parts[number].prediction(repeat=launch.repeat)
            for number, launch in self.launches
            if (self.parts[number].part.program, self.parts[number].part.arrays) not in known
        ]
        return sum(each.ready + each.kernel for each in found)

    @property
    def launches(self) -> list[tuple[int, PartLaunch]]:
        """The launch list: launches in order, each with the number of its part, from 0."""
        return in_order(part.part.launches for part in self.parts)

    @property
    def entries(self) -> int:
        """Entries of the launch list."""
        return sum(len(part.part.launches) for part in self.parts)

    @property
    def predicted_cycles(self) -> int:
        """Predicted cycles of a cold launch at a memory latency of 100 cycles."""
        return self.prediction().cycles

    @property
    def macs_issued(self) -> int:
        """Multiply-accumulates with those on padding."""
        return sum(part.macs_issued for part in self.parts)

    @property
    def units_used(self) -> dict[str, int]:
        """Units that any part uses, by the name of their kind."""
        used = {(kind, at) for part in self.parts for kind, at, _ in part.chip.units()}
        return {name: sum(each is kind for each, _ in used) for name, kind in UNIT_KINDS.items()}

    @property
    def image_bytes(self) -> int:
        """Bytes of all images."""
        return sum(len(part.image) for part in self.parts)

    @property
    def image_sha256(self) -> str:
        """Digest of all images, in order."""
        return hashlib.sha256(b"".join(part.image for part in self.parts)).hexdigest()

    def ir(self, after: str) -> str:
        """Text form after a pass.

        Raises
        ------
        BadInputError
            If there is no such pass.
        """
        if not isinstance(after, str) or after not in self.texts:
            rule = f"one of {', '.join(self.texts)}"
            raise BadInputError(
                f"Pass must be {rule}, not {after!r}{did_you_mean(str(after), self.texts)}",
                where="after",
                value=str(after),
                rule=rule,
            )
        return self.texts[after]

    def launch_notes(self) -> Iterator[str]:
        """Note on the latencies of many launches, if they are most of the predicted cycles."""
        if self.entries < _MANY_LAUNCHES:
            return
        runs = [self.parts[number].prediction() for number, _ in self.launches]
        idle = sum(each.kernel * (1 - max(each.busy.values())) for each in runs)
        share = idle / self.predicted_cycles
        if share >= _MUCH:
            yield (
                f"latencies limit the speed: in about {share:.2f} of the cycles the busiest unit "
                f"of {self.entries} launches waits: each begins with a load and ends with a store"
            )

    def report(self) -> str:
        """Return the choices and the predicted cost as text."""
        peak = ""
        if self.macs:
            share = self.macs / (self.predicted_cycles * self.peak_macs_per_cycle)
            useful = self.macs / self.macs_issued
            peak = f", {share:.3f} of peak; {useful:.3f} of the products issued are useful"
        used = ", ".join(f"{count} {kind.upper()}" for kind, count in self.units_used.items())
        lines = [
            f"{self.kernel}: {' '.join(f'{name}={size}' for name, size in self.dims.items())}, "
            f"{self.operands} to {self.out.name}",
        ]
        for number, part in enumerate(self.parts, 1):
            slots = ", ".join(
                f"{name} {home.slots} in PMU {home.pmu}" for name, home in part.homes.items()
            )
            head = f"part {number}: " if len(self.parts) > 1 else ""
            lines += [f"{head}{part.choice}", f"{head}slots: {slots}"]
        if len(self.parts) > 1:
            between = ", ".join(
                f"{each.name} {' x '.join(map(str, each.shape))} {each.format.name} "
                f"({each.bytes} bytes)"
                for each in self.intermediates
            )
            passed = f"; through memory: {between}" if between else ""
            iterations = sum(part.iterations for part in self.parts)
            repeated = f" of {iterations} iterations" if iterations > self.entries else ""
            lines.append(f"{len(self.parts)} parts, {self.entries} launches{repeated}{passed}")
        lines += [
            f"units: {used}; image {self.image_bytes} bytes",
            f"predicted: {self.predicted_cycles} cycles{peak}",
            *self.launch_notes(),
            *self.notes,
        ]
        return "\n".join(lines)
