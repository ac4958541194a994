"""Runs of lane programs on native models of lanes and of PCUs, compared with numpy."""

import numpy as np

from hw.arch.lanes.phase_word import PhaseSource
from hw.numeric.lane_model import LaneModel, VectorStream
from sim.drivers.random_lanes import (
    random_program,
    random_streams,
    words_of,
)
from sim.drivers.random_lanes import stream_payloads as payloads

__all__ = [
    "PORTS",
    "busy_cycles",
    "check_case",
    "check_program",
    "packets",
    "payloads",
    "random_program",
    "random_streams",
    "run_case",
    "run_lanes",
    "words_of",
]

#: Streams by the source of a phase.
PORTS = {
    PhaseSource.ACTIVATION: "i_activation",
    PhaseSource.AUXILIARY: "i_auxiliary",
    PhaseSource.ACCUMULATORS: "i_accumulators",
}


def run_lanes(model, prefix, program, streams, count, *, stalls, seed, functions=()):
    """Transfers of the streams when a program runs from reset, ``count`` results of it."""
    model.reset(seed)
    model.set(f"{prefix}_config", program.pack(functions))
    inputs = {f"{prefix}_{PORTS[source]}": payloads(stream) for source, stream in streams.items()}
    names = [f"{prefix}_o_result", *inputs]
    return model.run(
        inputs,
        {f"{prefix}_o_result": count},
        stalls=dict(zip(names, stalls, strict=False)),
        quiet_cycles=2_000,
    )


def check_program(model, prefix, sizes, program, rng, functions=(), **lengths):
    """Run a program on random streams under random stalls, and compare it with numpy."""
    width, _, bits = sizes
    streams = random_streams(rng, program, width_bits=width, **lengths)
    expected = LaneModel(program, width_bits=width, function_bits=bits).run(streams)
    stalls = rng.choice([0.0, 0.3, 0.7], 1 + len(streams))
    crossed = run_lanes(
        model,
        prefix,
        program,
        streams,
        len(expected.words),
        stalls=stalls,
        seed=rng.integers(1 << 30),
        functions=functions,
    )
    got = crossed[f"{prefix}_o_result"].words
    assert (got == payloads(expected)).all(), program


def packets(rng, count, length, words):
    """A stream of so many packets."""
    last = np.tile(np.arange(length) == length - 1, count)
    return VectorStream(words_of(rng, count * length * words).reshape(-1, words), last, last)


def busy_cycles(model, name, program, stream, sizes):
    """Cycles that an activation stream takes behind another one like it."""
    width, _, bits = sizes
    found = []
    for count in (1, 2):
        streams = {
            PhaseSource.ACTIVATION: VectorStream(
                *(np.concatenate([each] * count) for each in stream)
            )
        }
        expected = LaneModel(program, width_bits=width, function_bits=bits).run(streams)
        results = len(expected.words)
        crossed = run_lanes(model, name, program, streams, results, stalls=(0, 0), seed=1)
        taken = crossed[f"{name}_o_result"]
        assert (taken.words == payloads(expected)).all()
        found.append(taken.last_cycle - crossed[f"{name}_i_activation"].first_cycle)
    return found[1] - found[0]


def run_case(model, prefix, lanes, case, *, seed, stalls=None, **options):
    """Run a case on a model of a PCU, from reset if there is a seed; the results are numpy's."""
    if seed is not None:
        model.reset(seed)
    model.set(f"{prefix}_config", case.program.pack(lanes))
    model.set(f"{prefix}_i_run", 1)
    streams = {f"{prefix}_i_{port.name.lower()}": words for port, words in case.streams.items()}
    result = f"{prefix}_o_result"
    crossed = model.run(
        streams,
        {result: len(case.results)},
        stalls=dict(zip((result, *streams), stalls if stalls is not None else (), strict=False)),
        **options,
    )
    assert (crossed[result].words == case.results).all(), case.program
    return crossed


def check_case(model, prefix, chip, case, rng):
    """Run a case under random stalls, and compare it with numpy."""
    stalls = rng.choice([0.0, 0.3, 0.7], 4)
    seed = int(rng.integers(1 << 30))
    run_case(model, prefix, chip.pcu.lanes, case, seed=seed, stalls=stalls, quiet_cycles=2_000)
