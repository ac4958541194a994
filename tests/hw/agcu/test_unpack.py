"""AGCU programs out of their configuration words, and words that no program makes."""

import dataclasses
import random

import pytest

from hw.arch.agcu import AGCU_DESCRIPTORS, AGCU_STREAMS, AgcuProgram, agcu_layout
from hw.arch.boxes.issuer_program import (
    ISSUER_LOOPS,
    ISSUER_PROGRAMS,
    MAX_WAITS,
    IssuerProgram,
    Wait,
    nest_layout,
)
from hw.arch.descriptor import MAX_RANK, STORED_WORDS, WORD_BITS, Descriptor, ElementFormat
from hw.arch.errors import BadInputError
from hw.arch.loops import BoxLoop
from tests.hw.step_model import coordinates_of

PORTS = 4


def random_program(rng, descriptors, ports):
    """Program of any descriptor that waits for some of the ports."""
    loops = tuple(
        BoxLoop(rng.randint(1, 50), rng.randrange(MAX_RANK), rng.randint(-(1 << 17), (1 << 17) - 1))
        for _ in range(rng.randint(1, ISSUER_LOOPS))
    )
    if len(loops) > 1 and rng.random() < 0.5:
        slope = rng.randint(0, 4)
        shift = rng.randint(0, 7) if slope else 0
        loops = (*loops[:-1], BoxLoop(3, 0, 8, slope=slope, outer=0, shift=shift))
    waits = tuple(Wait(port, rng.randint(1, 15)) for port in ports if rng.random() < 0.7)
    return IssuerProgram(rng.randrange(descriptors), loops, waits)


def random_issuer(rng, descriptors, ports):
    """List of programs that wait for ports taken off a list."""
    mine = [ports.pop() for _ in range(min(rng.randint(0, MAX_WAITS), len(ports)))]
    count = rng.choice([1, 1, rng.randint(2, ISSUER_PROGRAMS)])
    first, *rest = (random_program(rng, descriptors, mine) for _ in range(count))
    return dataclasses.replace(first, following=tuple(rest))


def random_descriptor(rng):
    rank = rng.randint(1, MAX_RANK)
    return Descriptor(
        base=16 * rng.randrange(1 << 40),
        format=rng.choice(list(ElementFormat)),
        dims=[rng.randint(1, (1 << 32) - 1) for _ in range(rank)],
        strides=[16 * rng.randrange(1 << 36) for _ in range(rank - 1)],
        box=[rng.randint(1, 256) for _ in range(rank)],
    )


def random_agcu(rng, token_ports=PORTS):
    """A whole AGCU program with anything that may be in one."""
    descriptors = [
        (random_descriptor(rng), rng.randrange(16)) for _ in range(rng.randint(1, AGCU_DESCRIPTORS))
    ]
    ports = list(range(token_ports))
    rng.shuffle(ports)
    streams = [
        random_issuer(rng, len(descriptors), ports) if rng.random() < 0.7 else None
        for _ in range(2 * AGCU_STREAMS)
    ]
    return AgcuProgram(
        loads=tuple(streams[:AGCU_STREAMS]),
        stores=tuple(streams[AGCU_STREAMS:]),
        descriptors=tuple(descriptors),
        credits=tuple(rng.randrange(256) for _ in range(token_ports)),
        stored=tuple(sorted(rng.sample(range(AGCU_STREAMS), rng.randint(0, AGCU_STREAMS)))),
    )


def test_issuers_survive_packing(seed):
    rng = random.Random(seed)
    for _ in range(50):
        program = random_issuer(rng, 4, list(range(PORTS)))
        word = program.pack(descriptors=4, token_ports=PORTS)
        back = IssuerProgram.unpack(word, descriptors=4, token_ports=PORTS)
        assert back.pack(descriptors=4, token_ports=PORTS) == word
        for ours, theirs in zip(back.programs, program.programs, strict=True):
            assert (ours.descriptor, ours.waits) == (theirs.descriptor, theirs.waits)
            assert (
                [*coordinates_of(ours)][:1000] == [*coordinates_of(theirs)][:1000]
                if len(ours.loops) < 3
                else ours.chain() == theirs.chain()
            )


def test_agcus_survive_packing(seed):
    rng = random.Random(seed)
    for _ in range(50):
        program = random_agcu(rng)
        back = AgcuProgram.unpack(program.pack(PORTS), PORTS)
        assert back.pack(PORTS) == program.pack(PORTS)
        assert (back.descriptors, back.credits) == (program.descriptors, program.credits)
        assert back.stored == program.stored
        for ours, theirs in zip((*program.loads, *program.stores), (*back.loads, *back.stores)):
            assert (ours is None) == (theirs is None)
            if ours is not None:
                assert len(ours.programs) == len(theirs.programs)


@pytest.mark.parametrize(
    ("stored", "token_ports", "rule"),
    [
        ((0, 0), 2, r"must be different and below 2, not \(0, 0\)"),
        ((2,), 4, r"must be different and below 2, not \(2,\)"),
        ((0, 1), 1, r"must be below 1 token ports, not \(0, 1\)"),
    ],
)
def test_reports_of_streams_without_a_token_output_are_refused(stored, token_ports, rule):
    with pytest.raises(BadInputError, match=rule):
        AgcuProgram(stored=stored).pack(token_ports)


def test_nothing_is_a_program_that_does_nothing():
    assert AgcuProgram.unpack(0, PORTS).pack(PORTS) == 0


def _issuer_word(**changes):
    layout = nest_layout(descriptors=4, token_ports=PORTS)
    word = IssuerProgram(1, (BoxLoop(3),), (Wait(2, 3),)).pack(descriptors=4, token_ports=PORTS)
    for name, (value, offset) in changes.items():
        word |= value << layout[name].offset + offset
    return word


@pytest.mark.parametrize(
    ("word", "rule"),
    [
        (
            lambda: _issuer_word() << 2 * nest_layout(descriptors=4, token_ports=PORTS).size,
            "Issuer program 1 must follow another",
        ),
        (lambda: _issuer_word() & ~1, "Issuer configuration must be one that a program makes"),
        (lambda: _issuer_word(waits=(3, 6)), "one that a program makes"),
        (lambda: _issuer_word(dimensions=(7, 0)), "Box loop dimension must be from 0 to 4, not 7"),
        (lambda: _issuer_word(waits=(2 | 3 << 2, 6)), "wait for at most 2 different ports"),
    ],
)
def test_issuer_words_of_no_program_are_refused(word, rule):
    with pytest.raises(ValueError, match=rule):
        IssuerProgram.unpack(word(), descriptors=4, token_ports=PORTS)


def test_agcu_words_of_no_program_are_refused():
    layout = agcu_layout(PORTS)
    one = Descriptor(base=0, format=ElementFormat.BF16, dims=(8,), box=(8,))
    word = AgcuProgram(descriptors=((one, 1),)).pack(PORTS)
    stored = word >> layout["descriptors"].offset
    issuer = IssuerProgram(2, (BoxLoop(1),)).pack(descriptors=4, token_ports=PORTS)
    for change, rule in (
        (
            stored << layout["descriptors"].offset + 2 * STORED_WORDS * WORD_BITS,
            "Descriptor 2 must follow another",
        ),
        (issuer << layout["following"].offset, "Issuer program 1 must follow another"),
        (1 << layout["arguments"].offset + 4, "AGCU configuration must be one that a program"),
        (issuer << layout["issuers"].offset, "must name one of 1 descriptors, not 2"),
    ):
        with pytest.raises(ValueError, match=rule):
            AgcuProgram.unpack(word | change, PORTS)
    with pytest.raises(
        BadInputError, match="Descriptor rank must be an integer from 1 to 5, not 9"
    ):
        AgcuProgram.unpack(word | 9 << layout["descriptors"].offset + 72, PORTS)
