"""The rules of docs/switch.md as a token-level run in Python: queues, sets and no time."""

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from hw.arch.ports import Port
from hw.arch.switch import SwitchProgram
from tests.hw.mesh.bench import WIDTH, Place

__all__ = ["Outcome", "run"]

ENTRIES = 2


@dataclass
class Outcome:
    """Sequences at the outputs, and payloads that are still inside when nothing can move."""

    payloads: dict[Place, list[int]] = field(default_factory=dict)
    left: int = 0


def run(
    programs: Mapping[Hashable, SwitchProgram],
    wires: Mapping[Place, Place],
    sends: Mapping[Place, Sequence[int]],
    *,
    tokens: bool = False,
) -> Outcome:
    """Outcome of a mesh, which no timing can change."""
    outside = {place: deque(items) for place, items in sends.items()}
    queues: dict[Place, deque[int]] = {}
    have: dict[Place, set[Port]] = {}
    for name, program in programs.items():
        for port in program.ports.inputs:
            queues[name, port] = deque()
            have[name, port] = set()
    turns = {
        (name, each.output): [(turn.source, turn.packets) for turn in each.rotation]
        for name, program in programs.items()
        for each in program.outputs
    }
    passed = dict.fromkeys(turns, 0)
    outcome = Outcome()

    def enter() -> bool:
        moved = False
        for place, items in outside.items():
            while items and len(queues[place]) < ENTRIES:
                queues[place].append(items.popleft())
                moved = True
        return moved

    def leave(place: Place) -> bool:
        name, output = place
        source, count = turns[place][0]
        entrance = (name, source)
        if not queues[entrance] or output in have[entrance]:
            return False
        beyond = wires.get(place)
        if beyond and len(queues[beyond]) == ENTRIES:
            return False
        item = queues[entrance][0]
        target = queues[beyond] if beyond else outcome.payloads.setdefault(place, [])
        target.append(item)
        have[entrance].add(output)
        if have[entrance] == set(programs[name].branches(source)):
            queues[entrance].popleft()
            have[entrance].clear()
        if tokens or item >> WIDTH & 1:
            passed[place] += 1
            if passed[place] == count:
                passed[place] = 0
                turns[place].append(turns[place].pop(0))
        return True

    moving = True
    while moving:
        moving = enter()
        for place in turns:
            moving |= leave(place)
    outcome.left = sum(map(len, queues.values())) + sum(map(len, outside.values()))
    return outcome
