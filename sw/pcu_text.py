"""What a PCU does, as text: its products, the formulas of its lanes, the packets it takes."""

from __future__ import annotations

from hw.arch.pcu import FilterProgram, PcuProgram
from sw.lane_codes.phase_text import phases_text

__all__ = ["pcu_task", "pcu_text"]


def pcu_text(program: PcuProgram) -> str:
    """What it does, the packets that it takes, and those that it sends."""
    return "; ".join(filter(None, (pcu_task(program), _packets(program))))


def pcu_task(program: PcuProgram) -> str:
    """Products with their formats, and a formula for each phase of the lanes."""
    tasks = []
    if program.softmax:
        tasks.append(f"{program.softmax.role.name.lower()} of a softmax between two products")
    elif program.sums:
        formats = " x ".join(dict.fromkeys(each.name for each in program.operands))
        tasks.append(f"products of {formats}, sums sent as {program.out.name}")
    if program.lanes:
        tasks.append("lanes: " + ", then ".join(phases_text(program.lanes)))
    return "; ".join(tasks)


def _packets(program: PcuProgram) -> str:
    """The packets that it takes, if not all, and the length of those it sends, if they are cut."""
    ports = (
        ("activations", program.activation),
        ("weights", program.weight),
        ("auxiliary", program.auxiliary),
    )
    notes = [
        f"{name} of packets {each.index} modulo {each.modulus}"
        for name, each in ports
        if each != FilterProgram()
    ]
    if program.sums and program.weights_by_row:
        notes.append("weights by row")
    if program.by_group:
        notes.append("tiles by group")
    if program.packet_vectors:
        noun = "vector" if program.packet_vectors == 1 else "vectors"
        notes.append(f"results in packets of {program.packet_vectors} {noun}")
    return "; ".join(notes)
