"""Profile of a run: the data of its report, samples or prediction, and compiled kernel in one."""

from __future__ import annotations

import collections
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hw.arch.counters import ACTIVITIES, unit_kinds
from hw.arch.errors import BadInputError
from hw.arch.places import agcu_places
from sim.backends.interface import Answer
from sim.files import plain
from sim.profile.blocks import (
    Blocks,
    block_names,
    engine_turns,
    sampled_blocks,
    thinned,
    timeline_blocks,
)
from sim.profile.causes import Cause, attribute, whole_cycles
from sim.profile.findings import find
from sim.profile.intervals import Intervals, from_samples, from_timeline, merged
from sim.profile.moved_bytes import moved_bytes
from sim.profile.schema import FORMAT, VERSION
from sim.profile.source_lines import SourceLines
from sim.profile.token_arrows import Place, token_arrows
from sim.profile.unit_graph import graph_of, names_of
from sim.run.job import Job
from sim.run.report import TALLIES
from sw.chip_map import unit_task
from sw.timing.timeline import predict_timeline

if TYPE_CHECKING:
    from sw.compiled import Compiled

__all__ = ["LEAST_EVERY", "MOST_SAMPLES", "profile_of", "sample_distance"]

#: Cycles from sample to sample: at least so many, and more if the samples would be too many.
LEAST_EVERY, MOST_SAMPLES = 32, 16_384
_MOST_INTERVALS = 1024


def sample_distance(job: Job, compiled: Compiled) -> int:
    """Cycles from one sample to the next that suit a run."""
    expected = compiled.prediction(job.conditions.latency).cycles
    return max(LEAST_EVERY, expected // MOST_SAMPLES)


class _Kernel:
    """One kernel of the launch list: its part, its intervals, its blocks and their tokens."""

    def __init__(
        self,
        number: int,
        intervals: Intervals,
        blocks: Blocks,
        tokens: Sequence[tuple[Place, Place]] = (),
    ) -> None:
        self.number, self.intervals, self.blocks, self.tokens = number, intervals, blocks, tokens

    @property
    def begin(self) -> int:
        return int(self.intervals.edges[0])

    @property
    def end(self) -> int:
        return int(self.intervals.edges[-1])


def profile_of(
    job: Job,
    compiled: Compiled | None,
    report: Mapping[str, Any],
    answers: Sequence[Answer],
    *,
    message: str = "",
) -> dict[str, Any]:
    """Profile of a run, as data in the form of `sim.profile.schema`.

    Cycles are those of the RTL if its counters were sampled, otherwise predicted.

    Parameters
    ----------
    job : Job
    compiled : Compiled or None
    report : mapping
        Fields of the run's report, as far as they are known.
    answers : sequence of Answer
        Of the launches.
    message : str
        Why a launch did not end well.

    Raises
    ------
    BadInputError
        If nothing was compiled, so that no unit has a program.
    """
    if compiled is None:
        raise BadInputError(
            f"Profile must be of a back end that runs the chip, not {job.backend}",
            where="--profile",
            value=job.backend,
            rule="rtl, cocotb or emulator",
        )
    last = answers[-1] if answers else None
    predicted = last is None or not last.samples
    if predicted or last is None:
        kernels, cycles = _predicted(job, compiled)
    else:
        kernels, cycles = _sampled(job, compiled, last, report)
    units = list(unit_kinds(job.problem.config))
    causes = _causes(compiled, kernels, units, cycles)
    kinds = {name: kind.name for name, kind in unit_kinds(job.problem.config).items()}
    edges, states = _joined(kernels, units)
    moves = moved_bytes(compiled)
    blocks = thinned([block for kernel in kernels for block in kernel.blocks])
    lines = SourceLines(compiled)
    return {
        "format": FORMAT,
        "version": VERSION,
        "kernel": compiled.kernel,
        "config": str(report.get("config", "")),
        "backend": job.backend,
        "predicted": predicted,
        "status": "done" if last is None else last.status,
        "message": message,
        "cycles": cycles,
        "launch_cycles": cycles - sum(kernel.end - kernel.begin for kernel in kernels),
        "report": plain(dict(report)),
        "mesh": _mesh(job),
        "entries": [
            {"part": kernel.number, "begin": kernel.begin, "end": kernel.end} for kernel in kernels
        ],
        "edges": edges,
        "units": [
            _unit(name, kinds[name], compiled, causes[name], states[name], report)
            | {"lines": lines.of_unit(name)}
            for name in units
        ],
        "blocks": blocks,
        "tokens": _tokens(kernels, blocks),
        "routes": [
            each for number in range(len(compiled.parts)) for each in _routes(compiled, number)
        ],
        "tensors": [
            {
                "name": spec.name,
                "shape": list(spec.shape),
                "format": spec.format.name,
                "output": spec.output,
                "bytes": spec.bytes,
                "moved": moves.get(spec.name, 0),
            }
            for spec in compiled.arrays
        ],
        "transfers": lines.transfers(),
        "sources": lines.sources,
        "findings": find(causes, kinds, cycles, _by_lanes(compiled)),
        "roofline": {
            "macs": compiled.macs,
            "bytes": _bytes_one_way(compiled, report),
            "peak_macs": compiled.peak_macs_per_cycle,
            "peak_bytes": job.problem.config.peak_bytes_per_cycle,
        },
        "passes": [{"name": name, "text": text} for name, text in compiled.texts.items()],
    }


def _bytes_one_way(compiled: Compiled, report: Mapping[str, Any]) -> int:
    """Bytes of the ports' busier direction; without counts those of the tensors.

    Ports read and write at once.
    """
    moved = max(report.get(name) or 0 for name in ("dram_bytes_read", "dram_bytes_written"))
    return moved or max(
        sum(spec.bytes for spec in compiled.arrays if spec.output == written)
        for written in (False, True)
    )


def _predicted(job: Job, compiled: Compiled) -> tuple[list[_Kernel], int]:
    """Kernels of a cold launch as the machine model has them, and its cycles."""
    latency = job.conditions.latency
    units = list(unit_kinds(job.problem.config))

    @functools.cache
    def timeline(number: int, repeat: int) -> Any:
        part = compiled.parts[number]
        arguments = [each.offset for each in part.part.launches[0].arguments]
        return predict_timeline(part.chip, repeat=repeat, latency=latency, arguments=arguments)

    kernels: list[_Kernel] = []
    at = 0
    most = max(16, _MOST_INTERVALS // compiled.entries)
    for number, launch in compiled.launches:
        prediction = compiled.parts[number].prediction(latency, launch.repeat)
        begin = prediction.before if not kernels else at + prediction.after(at - kernels[-1].begin)
        found = timeline(number, launch.repeat)
        names = block_names(compiled.parts[number])
        intervals = from_timeline(found, units, begin, latency=latency, most=most)
        # Boxes of a further iteration need the tokens of the one before.
        tokens = tuple(token_arrows(compiled.parts[number])) if launch.repeat == 1 else ()
        kernels.append(_Kernel(number, intervals, timeline_blocks(found, names, begin), tokens))
        at = begin + found.cycles
    return kernels, at


def _sampled(
    job: Job, compiled: Compiled, answer: Answer, report: Mapping[str, Any]
) -> tuple[list[_Kernel], int]:
    """Kernels of the last launch list that is reported, and its cycles."""
    numbers = [number for number, _ in compiled.launches]
    own = answer.samples
    if job.warm and answer.status == "done":
        own = own[-len(numbers) :]
    done = answer.status == "done" and report.get("cycles")
    end = int(own[-1].cycles[-1])
    origin = end - int(report["cycles"]) if done else answer.launched + 1
    most = max(16, _MOST_INTERVALS // len(own))
    kernels = [
        _Kernel(
            number,
            merged(from_samples(each, origin), most),
            sampled_blocks(
                each,
                block_names(compiled.parts[number]),
                engine_turns(compiled.parts[number]),
                origin,
            ),
        )
        for number, each in zip(numbers, own, strict=False)
    ]
    return kernels, end - origin


def _tokens(kernels: Sequence[_Kernel], blocks: Blocks) -> list[dict[str, int]]:
    """Blocks between which a token goes, by their positions; none of blocks that were joined."""
    positions = {id(block): position for position, block in enumerate(blocks)}
    found = []
    for kernel in kernels:
        first: dict[Place, int] = {}
        last: dict[Place, int] = {}
        for block in kernel.blocks:
            position = positions.get(id(block))
            if position is not None:
                place = block["unit"], block["part"], block["number"]
                first.setdefault(place, position)
                last[place] = position
        found += [
            {"source": last[source], "sink": first[sink]}
            for source, sink in kernel.tokens
            if source in last and sink in first
        ]
    return found


def _causes(
    compiled: Compiled, kernels: Sequence[_Kernel], units: Sequence[str], cycles: int
) -> dict[str, dict[Cause, int]]:
    """Cycles of each unit by cause, over all kernels and what lies between them."""
    totals: dict[str, dict[Cause, int]] = {unit: collections.Counter() for unit in units}
    inside = 0
    for kernel in kernels:
        length = kernel.end - kernel.begin
        inside += length
        found = attribute(graph_of(compiled.parts[kernel.number]), kernel.intervals)
        for unit in units:
            for cause, count in whole_cycles(found[unit], length).items():
                totals[unit][cause] = totals[unit].get(cause, 0) + count
    for unit in units:
        if cycles > inside:
            totals[unit][Cause("launch")] = cycles - inside
    return totals


def _by_lanes(compiled: Compiled) -> set[str]:
    """PCUs that are busy by their lanes for most of their work, over all launches."""
    work: collections.Counter[str] = collections.Counter()
    for number, launch in compiled.launches:
        found = compiled.parts[number].prediction(repeat=launch.repeat)
        for unit, share in found.busy.items():
            sign = 1 if unit in found.by_lanes else -1
            work[unit] += sign * round(share * found.kernel)
    return {unit for unit, count in work.items() if count > 0}


def _joined(
    kernels: Sequence[_Kernel], units: Sequence[str]
) -> tuple[list[int], dict[str, list[list[int]]]]:
    """Edges and states over the run: between two kernels lies an interval without any state."""
    edges: list[int] = []
    parts: dict[str, list[Any]] = {unit: [] for unit in units}
    for kernel in kernels:
        own = kernel.intervals.edges.tolist()
        gap = bool(edges) and own[0] > edges[-1]
        edges += own if gap or not edges else own[1:]
        for unit in units:
            if gap:
                parts[unit].append(np.zeros((1, len(ACTIVITIES)), dtype=np.int64))
            parts[unit].append(kernel.intervals.states[unit])
    return edges, {
        unit: np.concatenate(each).T.tolist() if each else [[] for _ in ACTIVITIES]
        for unit, each in parts.items()
    }


def _unit(
    name: str,
    kind: str,
    compiled: Compiled,
    causes: Mapping[Cause, int],
    states: Sequence[list[int]],
    report: Mapping[str, Any],
) -> dict[str, Any]:
    labels = []
    for part in compiled.parts:
        for own, report_name in names_of(part).items():
            if report_name == name:
                labels.append(f"{own}: {unit_task(part, own)}")
    counted = (report.get("counters") or {}).get(name, {})
    return {
        "name": name,
        "kind": kind,
        "at": [int(each) for each in name.split("_")[1:]],
        "used": bool(labels),
        "labels": labels,
        "causes": [
            {"cause": cause.kind, "by": cause.by, "cycles": count}
            for cause, count in sorted(causes.items(), key=lambda each: -each[1])
        ],
        "counts": {tally: counted[tally] for tally in TALLIES if counted.get(tally) is not None},
        "states": dict(zip(ACTIVITIES, states, strict=True)),
    }


def _mesh(job: Job) -> dict[str, Any]:
    config = job.problem.config
    return {
        "rows": config.rows,
        "columns": config.columns,
        "agcus": [f"{place.row} {place.side}" for place in agcu_places(config)],
    }


def _routes(compiled: Compiled, number: int) -> list[dict[str, Any]]:
    part = compiled.parts[number]
    names = names_of(part)
    found = []
    for net in part.netlist.nets:
        hops = (part.routes.tokens if net.tokens else part.routes.vectors).get(net.name, ())
        found.append(
            {
                "part": number,
                "name": net.name,
                "tokens": net.tokens,
                "sources": list(dict.fromkeys(names[pin.unit] for pin, _ in net.sources)),
                "sinks": list(dict.fromkeys(names[pin.unit] for pin in net.sinks)),
                "hops": [f"{hop.place[0]} {hop.place[1]} {hop.program.output}" for hop in hops],
            }
        )
    return found
