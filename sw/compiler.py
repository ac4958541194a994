"""Compiler driver: runs the list of passes from a kernel to the image of a chip."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from hw.arch.config import ChipConfig
from hw.arch.errors import BadInputError, did_you_mean
from hw.numeric.formats import Format, bf16
from sw.array_spec import ArraySpec
from sw.chip_program import ChipProgram
from sw.ir.program import Program
from sw.language import Kernel, Schedule
from sw.netlist import Netlist
from sw.passes.compilation import Compilation
from sw.passes.fit import Fit
from sw.passes.pack import Home
from sw.passes.pass_driver import run_passes
from sw.passes.place import Placement
from sw.passes.plan import Plan
from sw.passes.route import Routes
from sw.passes.steps import PASSES
from sw.timing.prediction import LATENCY, Prediction, predict_cycles

__all__ = ["Compiled", "compile_kernel"]


@dataclasses.dataclass(frozen=True)
class Compiled:
    """Result of a compilation: image, choices, predictions, text after each pass.

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
        Arguments of the launch, in order.
    golden_program : Program
        The program after `accumulate`, which fixes the order of sums.
    schedule : Schedule
        Every choice, the compiler's included.
    plan, fit : Plan or None, Fit or None
        Of a product of matrices.
    choice : str
        What was chosen, as a line of text.
    homes : mapping of str to Home
        Allocation of the buffers.
    netlist : Netlist
    placement : Placement
    routes : Routes
    chip : ChipProgram
    image : bytes
    units_used : mapping of str to int
        Units in use, by kind.
    macs, macs_issued : int
        Multiply-accumulates without and with those on padding.
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
    plan: Plan | None
    fit: Fit | None
    choice: str
    homes: Mapping[str, Home]
    netlist: Netlist
    placement: Placement
    routes: Routes
    chip: ChipProgram
    image: bytes
    units_used: Mapping[str, int]
    macs: int
    macs_issued: int
    peak_macs_per_cycle: int
    notes: tuple[str, ...]
    texts: Mapping[str, str]
    _predictions: dict[int, Prediction] = dataclasses.field(default_factory=dict, repr=False)

    def prediction(self, latency: int = LATENCY) -> Prediction:
        """Predicted cycles of a launch at a memory latency, computed once for each latency.

        Parameters
        ----------
        latency : int
            Latency of the memory in cycles.
        """
        found = self._predictions.get(latency)
        if found is None:
            found = predict_cycles(self.chip, latency=latency, image_bytes=len(self.image))
            self._predictions[latency] = found
        return found

    @property
    def predicted_cycles(self) -> int:
        """Predicted cycles of a cold launch at a memory latency of 100 cycles."""
        return self.prediction().cycles

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

    def report(self) -> str:
        """Return the choices and the predicted cost as text."""
        peak = ""
        if self.macs:
            share = self.macs / (self.predicted_cycles * self.peak_macs_per_cycle)
            useful = self.macs / self.macs_issued
            peak = f", {share:.3f} of peak; {useful:.3f} of the products issued are useful"
        used = ", ".join(f"{count} {kind.upper()}" for kind, count in self.units_used.items())
        slots = ", ".join(
            f"{name} {home.slots} in PMU {home.pmu}" for name, home in self.homes.items()
        )
        lines = [
            f"{self.kernel}: {' '.join(f'{name}={size}' for name, size in self.dims.items())}, "
            f"{self.operands} to {self.out.name}",
            self.choice,
            f"slots: {slots}",
            f"units: {used}; image {len(self.image)} bytes",
            f"predicted: {self.predicted_cycles} cycles{peak}",
            *self.notes,
        ]
        return "\n".join(lines)


def compile_kernel(
    kernel: Kernel,
    config: ChipConfig,
    *,
    dims: Mapping[str, int],
    dtype: Format | Mapping[str, Format] | None,
    out: Format | Mapping[str, Format] | None = None,
    options: Mapping[str, Any] | None = None,
    schedule: Schedule | None = None,
    place_seed: int = 1,
    program: Program | None = None,
) -> Compiled:
    """Lower a kernel to the image of a chip.

    Parameters
    ----------
    kernel : Kernel
    config : ChipConfig
    dims : mapping of str to int
        Size of each dimension of the signature.
    dtype : Format, or mapping of str to Format, or None
        Format of the inputs that declare none, or of each by name.
    out : Format, or mapping of str to Format, or None
        Format of the outputs that declare none; None applies the language's rule.
    options : mapping of str to value
        Options of the kernel that differ from their defaults.
    schedule : Schedule or None
        Choices that override the program's.
    place_seed : int
        Seed of the placement.
    program : Program or None
        The kernel's program for these sizes and formats, traced and checked, if the caller has it.

    Raises
    ------
    BadInputError
        If the program breaks a rule, needs what hardware does not support yet, or does not fit.
    """
    schedule = schedule or Schedule()
    given = dict(options or {})
    state = Compilation(
        kernel, config, dims, dtype, out, given, schedule, place_seed, given=program
    )
    texts = run_passes(PASSES, state)
    inputs = [each.format for each in state.arrays if not each.output]
    results = [each.format for each in state.arrays if each.output]
    product, plan = state.product, state.plan
    return Compiled(
        kernel=kernel.name,
        config=config,
        dims=MappingProxyType(dict(dims)),
        options=MappingProxyType({**kernel.options, **given}),
        dtype=product.fmt if product else inputs[0],
        out=product.out if product else results[0],
        operands=product.operands if product else _names(inputs),
        arrays=state.arrays,
        golden_program=state.golden_program,
        schedule=_complete(state) | schedule,
        plan=plan,
        fit=state.fit,
        choice=state.choice,
        homes=MappingProxyType(dict(state.homes)),
        netlist=state.netlist,
        placement=state.placement,
        routes=state.routes,
        chip=state.chip,
        image=state.image,
        units_used=MappingProxyType(state.chip.units_used()),
        macs=product.m * product.n * product.k if product else 0,
        macs_issued=plan.macs_issued if plan else 0,
        peak_macs_per_cycle=config.peak_macs_per_cycle((product.fmt if product else bf16).bits),
        notes=_notes(state),
        texts=MappingProxyType(texts),
    )


def _names(formats: Sequence[Format]) -> str:
    """Different formats as text."""
    return " x ".join(dict.fromkeys(each.name for each in formats))


def _complete(state: Compilation) -> Schedule:
    """The complete schedule that reproduces the choices."""
    plan, places = state.plan, state.fit
    if plan is None or places is None:
        return Schedule()
    product = plan.product
    a_tile, b_tile = (1, 1) if "sum" in product.loops else (plan.a_slabs, plan.b_slabs)
    tiles = {
        product.a_tile: places.homes["a0"].slots // a_tile,
        product.b_tile: places.homes["b"].slots // b_tile,
        (product.c_tiles or ("",))[0]: places.homes["c0"].slots // places.pieces,
    }
    par, (rows, columns) = product.product, plan.grid
    return Schedule(
        tile=state.sizes,
        row_par={par: rows} if par else {},
        col_par={par: columns} if par else {},
        # Fewer than two tiles are left to the compiler: 1 would ask for one slot of a whole tile.
        slots={name: slots for name, slots in tiles.items() if name and slots > 1},
    )


def _notes(state: Compilation) -> tuple[str, ...]:
    """Notes on overruled hints and on plans that were given up."""
    notes, plan, product = [], state.plan, state.product
    named = (state.schedule.row_par, state.schedule.col_par)
    failures = state.failures["parallel"]
    if failures:
        count = len(failures)
        better = "1 better plan was" if count == 1 else f"{count} better plans were"
        notes.append(f"{better} given up: {failures[0].message}")
    if plan is None or product is None:
        return tuple(notes)
    for noun, choices, hint, had in (
        ("row_par", named[0], product.row_par, plan.grid[0]),
        ("col_par", named[1], product.col_par, plan.grid[1]),
    ):
        asked = choices.get(product.product, hint)
        if asked is not None and asked != had:
            strict = product.product in choices
            why = "more units would find no rows" if strict else "a hint, and this is faster"
            notes.append(f"{noun}={asked} became {had}: {why}")
    if plan.rows < plan.pass_columns:
        notes.append(
            f"loading weights limits the speed: a block of C {plan.rows} high is multiplied by "
            f"{plan.pass_columns} columns of weights, which take longer to load"
        )
    return tuple(notes)
