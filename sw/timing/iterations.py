"""A chip program whose one iteration equals several iterations of another, for a timed run."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping

from hw.arch.agcu import AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram
from hw.arch.loops import LoopProgram
from hw.arch.pmu import EngineProgram, PmuProgram
from hw.arch.words.pmu_word import Level
from sw.chip_program import ChipProgram, TileProgram

__all__ = ["iterated"]


def iterated(program: ChipProgram, count: int) -> ChipProgram | None:
    """Return a program that moves in one iteration what another moves in several.

    It need not fit the fields of an image: it is for a run of the network alone.

    Parameters
    ----------
    program : ChipProgram
        Accepted by `sw.prove.prove` for such a number of iterations.
    count : int

    Returns
    -------
    ChipProgram or None
        None if the outermost loop of an engine ends packets, or decides the count of an inner one,
        and so cannot be longer.
    """
    tiles: dict[tuple[int, int], TileProgram] = {}
    for at, tile in program.tiles.items():
        unit = tile.unit
        if isinstance(unit, PmuProgram):
            engines = [each and _engine(each, count) for each in unit.engines]
            if engines.count(None) > unit.engines.count(None):
                return None
            w0, w1, r0, r1 = engines
            unit = dataclasses.replace(unit, writers=(w0, w1), readers=(r0, r1))
        tiles[at] = dataclasses.replace(tile, unit=unit)
    agcus: Mapping[int, AgcuProgram] = {
        number: dataclasses.replace(
            agcu,
            loads=tuple(each and _issuer(each, count) for each in agcu.loads),
            stores=tuple(each and _issuer(each, count) for each in agcu.stores),
        )
        for number, agcu in program.agcus.items()
    }
    return ChipProgram(program.config, tiles, agcus)


def _engine(engine: EngineProgram, count: int) -> EngineProgram | None:
    """An engine with a further outermost loop; None if there is no room for it."""
    launches, windows = engine.launches.base, engine.windows.base
    outer = {loop.outer for loop in engine.chain.loops if loop.slope}
    if Level.LAUNCHES in outer:
        return None
    marks = {engine.last_level, engine.final_level}
    # The two outer loops become one. A mark at the end of the outer one is then at the end of the
    # inner one. A mark at the end of the inner one stays where it is if the outer one has one
    # iteration; an inner one of one iteration ends whenever the loop inside it does.
    if launches > 1 and (Level.WINDOWS in outer or (windows > 1 and Level.WINDOWS in marks)):
        if Level.LAUNCHES in marks:
            return None
        return dataclasses.replace(engine, launches=LoopProgram(base=count * launches))
    moved: dict[int, int] = {Level.LAUNCHES: Level.WINDOWS}
    if windows == 1:
        moved[Level.WINDOWS] = Level.REPEATS
    last, final = (
        None if each is None else moved.get(each, each)
        for each in (engine.last_level, engine.final_level)
    )
    return dataclasses.replace(
        engine,
        launches=LoopProgram(base=count),
        windows=LoopProgram(base=launches * windows),
        last_level=last,
        final_level=final,
    )


def _issuer(issuer: IssuerProgram, count: int) -> IssuerProgram:
    """An issuer whose list follows itself, longer than that of any chip."""
    first, *following = issuer.programs
    longer = copy.copy(first)
    rest = (*following, *(each for _ in range(count - 1) for each in (first, *following)))
    object.__setattr__(longer, "following", rest)
    return longer
