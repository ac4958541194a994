"""The command issuer: coordinates in the order of the nest, and tokens before every command."""

import dataclasses
import random

import pytest

from hw.agcu.issuer import CommandIssuer
from hw.arch.boxes.issuer_program import ISSUER_LOOPS, IssuerProgram, Wait
from hw.arch.descriptor import MAX_RANK
from hw.arch.loops import BoxLoop
from tests.hw.reused_simulator import Simulation
from tests.hw.step_model import commands_of

TOKEN_PORTS = 4


def run(program, *, arrivals, stall, seed, iterations=1, limit=20_000):
    """Commands issued, each with its cycle and the tokens that were there; and the last cycle."""
    simulator = Simulation(CommandIssuer, descriptors=4, token_ports=TOKEN_PORTS)
    issuer = simulator.design
    rng = random.Random(seed)
    commands = []
    tokens = [0] * TOKEN_PORTS
    cycles = 0

    async def bench(ctx):
        nonlocal cycles
        ctx.set(issuer.config.as_value(), program.pack(descriptors=4, token_ports=TOKEN_PORTS))
        ctx.set(issuer.i_last_iteration, iterations - 1)
        ctx.set(issuer.i_start, 1)
        await ctx.tick()
        ctx.set(issuer.i_start, 0)
        await ctx.tick()
        while not ctx.get(issuer.o_done):
            ctx.set(issuer.o_command.ready, rng.random() >= stall)
            for port in range(TOKEN_PORTS):
                ctx.set(issuer.i_tokens[port], tokens[port])
            if ctx.get(issuer.o_command.valid) and ctx.get(issuer.o_command.ready):
                payload = issuer.o_command.payload
                point = tuple(ctx.get(payload.coordinates[d]) for d in range(MAX_RANK))
                number = ctx.get(payload.iteration), ctx.get(payload.descriptor)
                commands.append((number, point, cycles, tuple(tokens)))
            for port in range(TOKEN_PORTS):
                tokens[port] += (rng.random() < arrivals[port]) - ctx.get(issuer.o_take[port])
                assert tokens[port] >= 0
                tokens[port] = min(tokens[port], 255)
            await ctx.tick()
            cycles += 1
            assert cycles < limit

    simulator.add_testbench(bench)
    simulator.run()
    return commands, cycles


PROGRAMS = [
    IssuerProgram(0, (BoxLoop(1),)),
    IssuerProgram(3, (BoxLoop(3, 1, 16), BoxLoop(2, 0, -64), BoxLoop(4, 1, 4))),
    IssuerProgram(1, tuple(BoxLoop(2, d % MAX_RANK, 10**d) for d in range(ISSUER_LOOPS - 1))),
    IssuerProgram(2, (BoxLoop(4, 1, 8), BoxLoop(1, 0, 8, slope=1, outer=0))),
    IssuerProgram(2, (BoxLoop(4, 2, -3), BoxLoop(3, 0, 100_000, slope=-1, outer=0)), (Wait(2, 3),)),
    IssuerProgram(1, (BoxLoop(6, 1, 72), BoxLoop(4, 0, 48, slope=3, outer=0, shift=1))),
    IssuerProgram(0, (BoxLoop(5, 1, 7), BoxLoop(2, 0, 1)), (Wait(0), Wait(3, 15))),
]
#: A list of four, whose third program begins with empty loops and whose second has no box at all.
FOUR = IssuerProgram(
    3,
    (BoxLoop(2, 1, 16), BoxLoop(3, 0, 5)),
    (Wait(0),),
    following=(
        IssuerProgram(0, (BoxLoop(2, 1, 3), BoxLoop(0, 0, 1))),
        IssuerProgram(1, (BoxLoop(3, 1, 8), BoxLoop(0, 0, 8, slope=1, outer=0)), (Wait(2, 2),)),
        IssuerProgram(2, (BoxLoop(1),), (Wait(0, 2), Wait(2, 1))),
    ),
)
PROGRAMS.append(FOUR)


@pytest.mark.few(6)
@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
@pytest.mark.parametrize("stall", [0.0, 0.6])
def test_commands_follow_the_nest_and_take_their_tokens(program, stall, seed):
    arrivals = (0.3, 0.1, 0.8, 0.9)
    commands, _ = run(program, arrivals=arrivals, stall=stall, seed=seed, iterations=3)
    expected = [(each, point) for _ in range(3) for each, point in commands_of(program)]
    once = len(expected) // 3
    assert [(number, point) for number, point, *_ in commands] == [
        ((number // once, each.descriptor), point) for number, (each, point) in enumerate(expected)
    ]
    for (*_, tokens), (each, _) in zip(commands, expected, strict=True):
        assert all(tokens[wait.port] >= wait.tokens for wait in each.waits)


def test_a_command_never_leaves_without_its_token(seed):
    program = IssuerProgram(0, (BoxLoop(3, 0, 1),), (Wait(1),))
    with pytest.raises(AssertionError, match="< 2000"):
        run(program, arrivals=(1, 0, 1, 1), stall=0, seed=seed, limit=2000)


def test_a_command_takes_one_cycle_a_loop_and_one_to_step():
    """Also from one program of a list to the next, and from one iteration to the next."""
    program = IssuerProgram(0, (BoxLoop(40, 0, 1),))
    program = dataclasses.replace(program, following=(program, IssuerProgram(1, (BoxLoop(2),))))
    commands, _ = run(program, arrivals=(0,) * 4, stall=0, seed=1, iterations=2)
    cycles = [cycle for *_, cycle, _ in commands]
    assert len(cycles) == 2 * 82 and cycles[0] + 2 == ISSUER_LOOPS + 1  # from `i_start` on
    assert {b - a for a, b in zip(cycles[:-1], cycles[1:], strict=True)} == {ISSUER_LOOPS + 1}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BoxLoop(1, 5), r"dimension must be from 0 to 4, not 5"),
        (
            lambda: BoxLoop(1, 0, 1 << 17),
            r"step must be from -131072 to 131071 elements, not 131072",
        ),
        (lambda: Wait(0, 16), r"take 1 to 15 tokens, not 16"),
        (lambda: IssuerProgram(0, ()), r"1 to 6 loops, not 0"),
        (lambda: IssuerProgram(0, (BoxLoop(1),) * 7), r"1 to 6 loops, not 7"),
        (
            lambda: IssuerProgram(0, (BoxLoop(1 << 16),)),
            r"counts must be from 0 to 65535, not 65536",
        ),
        (lambda: IssuerProgram(0, (BoxLoop(1),), (Wait(1), Wait(1))), r"at most 2 different ports"),
        (
            lambda: IssuerProgram(0, (BoxLoop(1),), index=5),
            r"dimension must be from 1 to 4, or 0, not 5",
        ),
        (
            lambda: IssuerProgram(0, (BoxLoop(2), BoxLoop(3, 1, 8)), index=1),
            r"must not move the indexed dimension 1, not by 8",
        ),
        (
            lambda: IssuerProgram(0, (BoxLoop(1),), following=(PROGRAMS[0],) * 4),
            r"at most 4 programs, not 5",
        ),
        (
            lambda: IssuerProgram(0, (BoxLoop(1),), following=(FOUR,)),
            r"Program of a list must have no list of its own, not \(IssuerProgram",
        ),
        (
            lambda: IssuerProgram(4, (BoxLoop(1),)).pack(descriptors=4, token_ports=4),
            r"descriptor must be from 0 to 3, not 4",
        ),
        (
            lambda: IssuerProgram(0, (BoxLoop(1),), (Wait(4),)).pack(descriptors=4, token_ports=4),
            r"Token port must be from 0 to 3, not 4",
        ),
    ],
)
def test_programs_that_cannot_work_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
