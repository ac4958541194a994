"""Check of AGCU streams that never block in a box: its tokens imply free or filled slots."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from hw.arch.boxes.issuer_program import IssuerProgram
from hw.arch.pmu import PmuProgram
from hw.arch.unit_kind import AGCU
from hw.arch.words.pmu_word import IndexUse, TokenSource
from sw.chip_program import ChipProgram
from sw.fabric.nets import Input, Junction, MergeInput, Nets, Output
from sw.prove.unrolled_loops import box_owners, visits

__all__ = ["arrivals", "load_is_free", "store_is_free", "tokens_needed", "tokens_taken"]

Ints = npt.NDArray[np.int64]
#: An engine: position of its PMU, and its index among W0, W1, R0, R1.
_Engine = tuple[tuple[int, ...], int]


def arrivals(nets: Nets, root: Output | Junction, tokens: Ints) -> dict[Output, Ints]:
    """Tokens that each source must have sent once a root has passed the given numbers of tokens."""
    if isinstance(root, Output):
        return {root: tokens}
    counts = nets.packets[root]
    rounds, rest = tokens // sum(counts), tokens % sum(counts)
    found: dict[Output, Ints] = {}
    before = 0
    for turn, count in enumerate(counts):
        source = nets.feeds.get(MergeInput(root, turn))
        if source is not None:
            mine = rounds * count + np.clip(rest - before, 0, count)
            for output, given in arrivals(nets, source, mine).items():
                found[output] = np.maximum(found.get(output, 0), given)
        before += count
    return found


def tokens_taken(issuer: IssuerProgram) -> dict[int, Ints]:
    """Per token port that an issuer waits for, the tokens taken up to and with each box."""
    owners = box_owners(issuer)
    found = {}
    for port in sorted({wait.port for each in issuer.programs for wait in each.waits}):
        each = [
            sum(wait.tokens for wait in program.waits if wait.port == port)
            for program in issuer.programs
        ]
        found[port] = np.cumsum(np.array(each, np.int64)[owners])
    return found


def tokens_needed(
    program: ChipProgram, nets: Nets, index: int, issuer: IssuerProgram
) -> Iterator[tuple[Output, Ints]]:
    """Sources of an issuer's tokens, each with the tokens that it must have sent before each box.

    Initial credits are taken off. A source of several ports comes once for each.
    """
    agcu = program.agcus[index]
    for port, taken in tokens_taken(issuer).items():
        root = nets.feeds.get(Input(AGCU, (index,), port, tokens=True))
        if root is None:
            continue
        credit = agcu.credits[port] if port < len(agcu.credits) else 0
        needed = np.maximum(taken - credit, 0)
        yield from arrivals(nets, root, needed).items()


def _closings(
    program: ChipProgram, nets: Nets, index: int, issuer: IssuerProgram
) -> dict[_Engine, Ints]:
    """Lower bound, per engine and box, on the slots finished when the box may begin."""
    found: dict[_Engine, Ints] = {}
    for output, given in tokens_needed(program, nets, index, issuer):
        unit = _slotted(program, output)
        if unit is not None:
            engine = (output.at, int(unit.tokens[output.port].value) - 1)
            found[engine] = np.maximum(found.get(engine, 0), given)
    return found


def _slotted(program: ChipProgram, pin: Input | Output) -> PmuProgram | None:
    """Program of a pin's unit if it keeps payloads in slots, whose tokens free or fill them."""
    unit = program.unit(pin.at)
    return unit if isinstance(unit, PmuProgram) else None


def _reports(unit: PmuProgram, engine: int) -> bool:
    return TokenSource(engine + 1) in unit.tokens


def load_is_free(
    program: ChipProgram, nets: Nets, root: Output, issuer: IssuerProgram, sizes: Ints
) -> bool:
    """Whether every box of a load finds a free slot at each PMU it reaches, given its tokens.

    Parameters
    ----------
    program : ChipProgram
    nets : Nets
    root : Output
        The load stream.
    issuer : IssuerProgram
    sizes : array
        Vectors of each box.
    """
    boxes = len(sizes)
    closings = _closings(program, nets, root.at[0], issuer)
    for leaf, _ in nets.nets[root].leaves:
        if not isinstance(leaf, Input):
            return False
        unit = _slotted(program, leaf)
        writer = unit.writers[leaf.port] if unit else None
        if unit is None or writer is None or _reports(unit, leaf.port):
            return False
        if unit.indexed is not None and unit.indexed.use is not IndexUse.GATHER:
            return False
        taken = np.arange(writer.index, boxes, writer.modulus)
        ends = np.cumsum(visits(writer).vectors)
        last = np.searchsorted(ends, np.cumsum(sizes[taken]))
        if len(taken) and last[-1] >= len(ends):
            return False
        readers = unit.partners(leaf.port)
        needed = last - writer.ring.count + 1
        if (needed > 0).any() and not readers:
            return False
        for number in readers:
            sure = closings.get((leaf.at, number), np.zeros(boxes, np.int64))
            if (sure[taken] < needed).any():
                return False
    return True


def store_is_free(program: ChipProgram, nets: Nets, index: int, port: int, sizes: Ints) -> bool:
    """Whether every box of a store finds its slots full, given its tokens.

    Parameters
    ----------
    program : ChipProgram
    nets : Nets
    index, port : int
        The store stream.
    sizes : array
        Vectors of each box.
    """
    issuer = program.agcus[index].stores[port]
    root = nets.feeds.get(Input(AGCU, (index,), port))
    if issuer is None or not isinstance(root, Output):
        return False
    unit = _slotted(program, root)
    reader = unit.readers[root.port] if unit else None
    if unit is None or reader is None or unit.indexed or _reports(unit, 2 + root.port):
        return False
    if len(nets.nets[root].leaves) > 1:
        return False
    boxes = len(sizes)
    closings = _closings(program, nets, index, issuer)
    passes = visits(reader)
    last = np.searchsorted(np.cumsum(passes.vectors), np.cumsum(sizes))
    if boxes and last[-1] >= len(passes.turn):
        return False
    needed = np.maximum.accumulate(passes.turn)[last] + 1
    writers = unit.partners(2 + root.port)
    sure = [closings.get((root.at, number), np.zeros(boxes, np.int64)) for number in writers]
    return bool(writers) and all((each >= needed).all() for each in sure)
