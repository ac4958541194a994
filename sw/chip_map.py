"""Chip map as text: what each unit of a kernel does, where each stream runs, and its rate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hw.arch.agcu import AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram
from hw.arch.pcu import PcuProgram
from hw.arch.pmu import PmuProgram
from hw.arch.ports import Link, UnitProgram
from hw.arch.unit_kind import AGCU, PCU, PMU, UNIT_KINDS, UnitKind
from sw.compiled import Compiled
from sw.compiled_part import CompiledPart
from sw.netlist import Net
from sw.pcu_text import pcu_task
from sw.stages.stage_graph import Hold
from sw.timing.prediction import Prediction, unit_name

__all__ = ["chip_map", "unit_task"]

#: Kinds whose work can bound the speed, as text.
_BOUNDS = {
    PCU: "the PCUs compute",
    PMU: "the PMUs read or write",
    AGCU: "the AGCUs move beats from or to memory",
}

#: Share of busy cycles up to which no unit bounds the speed.
_BUSY = 0.5


def chip_map(compiled: Compiled) -> str:
    """Chip map as text: units, streams with their rates, and what bounds the speed.

    Parameters
    ----------
    compiled : Compiled

    Returns
    -------
    str
        A table of units and one of streams for each part of the kernel. Rates are predicted, for
        a memory latency of 100 cycles.
    """
    lines = [compiled.report()]
    for number, part in enumerate(compiled.parts, 1):
        if len(compiled.parts) > 1:
            lines += ["", f"part {number} of {len(compiled.parts)}"]
        lines += ["", *_part_lines(part)]
    return "\n".join(lines)


def _part_lines(part: CompiledPart) -> Iterator[str]:
    prediction = part.prediction()
    yield from _table(
        ("unit", "place", "busy", "what it does"),
        [
            (name, _place(part, name, unit), _share(prediction, part, name), unit_task(part, name))
            for name, unit in part.netlist.units.items()
        ],
    )
    yield ""
    yield from _table(
        ("stream", "links", "vectors/cycle", "from -> to"),
        [
            (net.name, str(_links(part, net)), f"{_rate(prediction, part, net):.2f}", _ends(net))
            for net in part.netlist.nets
            if not net.tokens
        ],
    )
    yield ""
    yield _bound(part, prediction)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns of text, the last one as long as it is."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)][:-1]
    for row in (head, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join([*cells, row[-1]])


def _kind(unit: UnitProgram) -> UnitKind:
    return next(kind for kind in UNIT_KINDS.values() if kind.program is type(unit))


def _at(part: CompiledPart, name: str) -> tuple[int, ...]:
    """Row and column of a unit, or the number of an AGCU."""
    fixed = part.netlist.fixed
    return (fixed[name],) if name in fixed else tuple(part.placement.tiles[name])


def _place(part: CompiledPart, name: str, unit: UnitProgram) -> str:
    at = _at(part, name)
    return f"{_kind(unit)} {at if len(at) > 1 else at[0]}"


def _report_name(part: CompiledPart, name: str) -> str:
    return unit_name(_kind(part.netlist.units[name]), _at(part, name))


def _share(prediction: Prediction, part: CompiledPart, name: str) -> str:
    return f"{prediction.busy[_report_name(part, name)]:.2f}"


def unit_task(part: CompiledPart, name: str) -> str:
    """Task of a unit."""
    match part.netlist.units[name]:
        case PcuProgram() as program:
            return pcu_task(program)
        case PmuProgram():
            return _pmu_task(part, int(name.removeprefix("pmu")))
        case AgcuProgram() as program:
            return _agcu_task(part, program)
        case program:
            raise AssertionError(type(program))


def _pmu_task(part: CompiledPart, number: int) -> str:
    capacity = part.chip.config.pmu.capacity_bytes
    tasks = []
    for name, home in part.homes.items():
        stage = part.graph.stages[name]
        if home.pmu == number and isinstance(stage, Hold):
            share = home.slots * stage.slot_bytes / capacity
            slots = "slot" if home.slots == 1 else "slots"
            tasks.append(
                f"{name}: {home.slots} {slots} of {stage.slot_bytes:,} bytes, {share:.2f} of it"
            )
    return "; ".join(tasks)


def _agcu_task(part: CompiledPart, program: AgcuProgram) -> str:
    tasks = []
    for verb, issuers in (("loads", program.loads), ("stores", program.stores)):
        tasks += [
            f"{verb} {_boxes(part, program, each)}"
            for issuer in issuers
            if issuer
            for each in (issuer, *issuer.following)
        ]
    return "; ".join(tasks)


def _boxes(part: CompiledPart, program: AgcuProgram, issuer: IssuerProgram) -> str:
    descriptor, argument = program.descriptors[issuer.descriptor]
    box = " x ".join(map(str, reversed(descriptor.box)))
    return f"{part.part.arrays[argument].name} in boxes of {box}"


def _links(part: CompiledPart, net: Net) -> int:
    hops = part.routes.vectors.get(net.name, ())
    return sum(isinstance(hop.program.output, Link) for hop in hops)


def _rate(prediction: Prediction, part: CompiledPart, net: Net) -> float:
    """Vectors that the sources of a net send per cycle of the kernel."""
    sent = 0
    for pin, _ in net.sources:
        sent += prediction.vectors[_report_name(part, pin.unit), pin.port]
    return sent / prediction.kernel


def _ends(net: Net) -> str:
    sources, sinks = (
        " ".join(dict.fromkeys(pin.unit for pin in pins))
        for pins in ([pin for pin, _ in net.sources], net.sinks)
    )
    return f"{sources} -> {sinks}"


def _bound(part: CompiledPart, prediction: Prediction) -> str:
    """Which kind of unit is busy in most cycles, and what the rest are."""
    shares = {
        kind: max(
            prediction.busy[_report_name(part, name)]
            for name, unit in part.netlist.units.items()
            if _kind(unit) is kind
        )
        for kind in _BOUNDS
        if any(_kind(unit) is kind for unit in part.netlist.units.values())
    }
    first, *others = sorted(shares, key=lambda kind: -shares[kind])
    rest = ", ".join(f"{kind}s {shares[kind]:.2f}" for kind in others)
    idle = "" if shares[first] > _BUSY else "latencies, as no unit is busy for long: "
    found = (
        f"what bounds the speed: {idle}{_BOUNDS[first]} in {shares[first]:.2f} of the kernel's "
        f"{prediction.kernel:,} cycles ({rest}); {prediction.before:,} cycles pass before it"
    )
    return found if part.iterations == 1 else f"{found}\n{_iterations(part)}"


def _iterations(part: CompiledPart) -> str:
    """How long all iterations of a part take; busy shares and rates are those of one."""
    launches = part.part.launches
    cycles = sum(part.prediction(repeat=each.repeat).kernel for each in launches)
    several = f" in {len(launches)} launches" if len(launches) > 1 else ""
    return f"{part.iterations} iterations{several} take {cycles:,} cycles; the table is of one"
