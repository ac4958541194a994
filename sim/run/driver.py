"""Execution of a job: compile, launch, compare with golden bit by bit and golden with float64."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hw.arch.config import ChipConfig
from sim.backends.choose import open_backend, require_tools
from sim.backends.interface import Answer, Backend, LaunchOrder
from sim.golden import golden
from sim.launch_memory import LaunchMemory
from sim.operands import random_inputs
from sim.run.endings import raise_for_ending
from sim.run.float64_error import compare_with_reference
from sim.run.job import BACKENDS, Job
from sim.run.report import FIELDS, report_counters
from sim.run.waves_view import write_waves_view
from sw.macs import count_macs

if TYPE_CHECKING:
    from sw.compiled import Compiled

from sim.run.report import Outcome

__all__ = ["compile_job", "predicted_cycles", "run"]

Array = npt.NDArray[Any]

#: A run counts as a hang after this multiple of the predicted cycles plus this slack.
_PATIENCE, _SLACK_CYCLES = 8, 100_000


def _digest(arrays: Iterable[Array]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _config_digest(config: ChipConfig) -> str:
    return hashlib.sha256(json.dumps(config.resolved(), sort_keys=True).encode()).hexdigest()


def predicted_cycles(job: Job, compiled: Compiled) -> int | None:
    """Predicted cycles of a job's launch: of a cold one, or of the warm one behind it.

    None for a back end whose memory answers at once: predictions are at a memory latency.
    """
    if "latency" in BACKENDS[job.backend]:
        return None
    found = compiled.prediction(job.conditions.latency)
    return found.warm_cycles if job.warm else found.cycles


def compile_job(
    job: Job, compiled: Compiled | None = None
) -> tuple[Compiled | None, dict[str, Any]]:
    """Compile a job's kernel unless the back end is golden; returns it with its report fields.

    Cycles are predicted if the back end has timing. A prediction takes longer than the emulator,
    so otherwise it is left to who shows it.

    Parameters
    ----------
    job : Job
    compiled : Compiled
        The kernel if it has been compiled before.

    Raises
    ------
    BadInputError
        If it cannot be lowered, or does not fit.
    MissingToolError
        If a tool for building its model is missing.
    """
    started = time.monotonic()
    require_tools(job.backend, job.setup())
    problem = job.problem
    fields: dict[str, Any] = {
        "kernel": problem.kernel.name,
        "backend": job.backend,
        "dtype": problem.operand.name,
        "out_dtype": problem.outputs[0].format.name,
        "params": problem.params,
        "schedule": json.loads(problem.schedule.to_json()),
        "seed": job.seed,
        "config_sha256": _config_digest(problem.config),
        "peak_macs_per_cycle": problem.peak_macs_per_cycle,
    }
    if job.backend == "golden":
        compiled = None
    elif compiled is None:
        with job.progress.step("compiling the kernel"):
            compiled = problem.compile()
    if compiled is not None:
        fields |= {
            "dtype": compiled.operands,
            "schedule": json.loads(compiled.schedule.to_json()),
            "macs_issued": compiled.macs_issued,
            "peak_macs_per_cycle": compiled.peak_macs_per_cycle,
            "predicted_cycles": predicted_cycles(job, compiled) if job.timed else None,
            "parts": len(compiled.parts),
            "entries": compiled.entries,
            "units_used": dict(compiled.units_used),
            "image_sha256": compiled.image_sha256,
            "image_bytes": compiled.image_bytes,
        }
    return compiled, fields | {"compile_seconds": time.monotonic() - started}


def run(
    job: Job,
    compiled: Compiled | None,
    fields: Mapping[str, Any],
    answers: list[Answer] | None = None,
) -> Outcome:
    """Run a job whose image `compile_job` has made.

    Parameters
    ----------
    job : Job
    compiled : Compiled or None
    fields : mapping
        Fields of the report so far.
    answers : list of Answer, optional
        Takes the answer of every launch, also of one that does not end well.

    Raises
    ------
    HangError
        If the watchdog ended the launch; the message names the units that wait.
    DeviceError
        If the chip ended the launch with an error code.
    MissingToolError
        If the back end needs a tool that is missing.
    """
    problem = job.problem
    report = dict.fromkeys(FIELDS) | dict(fields)
    inputs = job.inputs
    if inputs is None:
        inputs = random_inputs(problem.inputs, job.seed, limits=problem.row_limits)
    program = compiled.golden_program if compiled else problem.golden_program
    with job.progress.step("computing the golden answer"):
        function_bits = problem.config.pcu.function_bits
        expected = golden(program, inputs, function_bits=function_bits)
    with job.progress.step("comparing it with float64"):
        errors = compare_with_reference(
            problem.kernel,
            program,
            inputs,
            expected,
            problem.outputs,
            options=problem.params,
            function_bits=function_bits,
        )
    report |= {
        "macs": count_macs(program),
        "input_sha256": _digest(inputs.values()),
        "golden_sha256": _digest(expected.values()),
        "error_bound": errors.bound,
        "max_abs_err": errors.absolute,
        "error_of_bound": errors.of_bound,
        "max_rel_err": errors.relative,
    }
    problems = []
    if errors.worst:
        problems.append(
            f"golden differs from the float64 reference beyond rounding: {errors.worst}"
        )
    notes = list(compiled.notes) if compiled else []
    if compiled and job.timed:
        notes += compiled.launch_notes()
    if problem.kernel.reference.function is None:
        notes.append("no reference: float64 error not checked")
    elif errors.bound is None:
        notes.append("no element has a bound: float64 error not checked")
    outputs = expected
    if compiled is not None:
        launched, outputs, wrong, more = _launch(
            job, compiled, inputs, expected, report, [] if answers is None else answers
        )
        notes += more
        report |= launched
        problems = wrong + problems
    report |= {"output_sha256": _digest(outputs.values()), "verified": not problems}
    return Outcome(report, outputs, tuple(problems), tuple(notes))


def _launch(
    job: Job,
    compiled: Compiled,
    inputs: Mapping[str, Array],
    expected: Mapping[str, Array],
    report: dict[str, Any],
    answers: list[Answer],
) -> tuple[dict[str, Any], dict[str, Array], list[str], list[str]]:
    """Run the launches; returns report fields, outputs, problems and notes."""
    conditions = job.conditions
    if job.timed:
        report["stall"] = conditions.stall
    if job.backend == "rtl":
        report |= {"latency": conditions.latency, "jitter": conditions.jitter}
    wrong: list[str] = []
    outputs: dict[str, Array] = {}
    if job.waves is not None:
        job.waves.parent.mkdir(parents=True, exist_ok=True)
    view = None
    try:
        with open_backend(job.backend, job.setup()) as backend:
            for launches in (1, 2) if job.warm else (1,):
                report |= dataclasses.asdict(backend.figures)
                if launches == 2:
                    expected = _once_more(job, compiled, inputs, expected)
                outputs, faults = _once(
                    job, compiled, backend, launches, inputs, expected, report, answers
                )
                wrong += [fault for fault in faults if fault not in wrong]
            report |= dataclasses.asdict(backend.figures)
    finally:
        # Waves are whole once the back end is closed, also those of a launch that hung.
        if job.waves is not None:
            view = write_waves_view(job.waves)
    notes = [] if job.waves is None else [f"waves in {job.waves}"]
    if view is not None:
        notes.append(f"their ports in a viewer: gtkwave {view}")
    if job.timed and compiled.entries > 1:
        notes.append(
            f"counters are those of the last of {compiled.entries} entries of the launch list, of "
            f"part {compiled.launches[-1][0] + 1}"
        )
    if conditions.error is not None and not any(answer.error_met for answer in answers):
        notes.append("the beat of --error-at never came")
    return _figures(job, compiled, answers) | {"bit_exact": not wrong}, outputs, wrong, notes


def _once_more(
    job: Job, compiled: Compiled, inputs: Mapping[str, Array], expected: Mapping[str, Array]
) -> Mapping[str, Array]:
    """Golden outputs of a second launch, which finds those of the first in their tensors."""
    if not inputs.keys() & expected.keys():
        return expected
    found = {name: expected.get(name, array) for name, array in inputs.items()}
    function_bits = job.problem.config.pcu.function_bits
    return golden(compiled.golden_program, found, function_bits=function_bits)


def _once(
    job: Job,
    compiled: Compiled,
    backend: Backend,
    launches: int,
    inputs: Mapping[str, Array],
    expected: Mapping[str, Array],
    report: Mapping[str, Any],
    answers: list[Answer],
) -> tuple[dict[str, Array], list[str]]:
    place = LaunchMemory.of_kernel(compiled, seed=job.seed, launches=launches)
    before = place.bytes_before(inputs)
    memory = bytearray(before)
    answer = backend.launch(memory, _order(job, compiled, place, launches))
    answers.append(answer)
    if answer.status != "done":
        raise_for_ending(job, compiled, answer, dict(report) | _figures(job, compiled, [answer]))
    outputs = {name: place.read(memory, name) for name in expected}
    wrong = [
        line
        for name, array in expected.items()
        if (line := _difference(name, outputs[name], array))
    ]
    address = place.changed_outside(before, memory)
    if address is not None:
        wrong.append(
            f"byte at {address:#x} was written, {place.where(address)}, which is no output's"
        )
    return outputs, wrong


def _order(job: Job, compiled: Compiled, place: LaunchMemory, launches: int) -> LaunchOrder:
    """Order of a launch; without timing there are no limits, which take a prediction."""
    if not job.timed:
        return LaunchOrder(place.list_address, place.entries, max_cycles=0)
    found = compiled.prediction(job.conditions.latency)
    return LaunchOrder(
        place.list_address,
        place.entries,
        max_cycles=job.max_cycles or _patience(job, compiled) * launches,
        expected_cycles=found.cycles + found.warm_cycles * (launches - 1),
        regions=place.regions,
    )


def _difference(name: str, got: Array, expected: Array) -> str | None:
    """Description of the differences of an output from golden; None if there are none."""
    size = expected.dtype.itemsize
    pairs = [np.ascontiguousarray(array).view(f"u{size}").reshape(-1) for array in (got, expected)]
    differs = np.flatnonzero(pairs[0] != pairs[1])
    if not differs.size:
        return None
    first = int(differs[0])
    index = ", ".join(str(int(each)) for each in np.unravel_index(first, expected.shape))
    return (
        f"{differs.size} of {expected.size} elements of {name} differ from golden; "
        f"{name}[{index}] is {int(pairs[0][first]):#x}, not {int(pairs[1][first]):#x}"
    )


def _patience(job: Job, compiled: Compiled) -> int:
    """Cycles after which a launch counts as a hang."""
    conditions = job.conditions
    slowed = compiled.predicted_cycles * (1 + (conditions.latency + conditions.jitter) / 100)
    return _SLACK_CYCLES + int(_PATIENCE * slowed / (1 - conditions.stall))


def _figures(job: Job, compiled: Compiled, answers: list[Answer]) -> dict[str, Any]:
    """Report fields of the last launch of the kernel.

    Counters are those of the last entry of the list. With two lists, bytes are the difference of
    the two, and so are cycles if a launch has several entries.
    """
    last = answers[-1]

    def counted(name: str) -> int | None:
        values = [getattr(answer, name) for answer in answers]
        if None in values:
            return None
        return int(values[-1] - values[0]) if len(values) > 1 else int(values[0])

    if compiled.entries > 1:
        cycles = counted("cycles")
    else:
        cycles = None if last.cycles is None else last.cycles - last.entry_begin
    simulated = [answer.simulated_cycles for answer in answers]
    seconds = sum(answer.seconds for answer in answers)
    figures: dict[str, Any] = {
        "cycles": cycles,
        "launch_to_first_mac": answers[0].first_mac,
        "launches": len(answers),
        "dram_bytes_read": counted("bytes_read"),
        "dram_bytes_written": counted("bytes_written"),
        "run_seconds": seconds,
    }
    if cycles and compiled.macs:
        figures["utilization"] = compiled.macs / (cycles * compiled.peak_macs_per_cycle)
    moved = [figures[name] for name in ("dram_bytes_read", "dram_bytes_written")]
    if cycles and None not in moved:
        figures["memory_utilization"] = max(moved) / (
            cycles * job.problem.config.peak_bytes_per_cycle
        )
    if job.timed and None not in simulated:
        figures["cycles_per_second"] = sum(map(int, filter(None, simulated))) / seconds
    if last.counters is not None:
        figures["counters"] = report_counters(
            job.problem.config, job.problem.operand, last.counters, last.launch_cycles
        )
    return figures
