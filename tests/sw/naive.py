"""The token-level run one payload at a time, in random order, with every buffer of the RTL.

It shares nothing with the prover but the programs: no nets, no runs of payloads, no packets known
beforehand. An oracle for it, slow.
"""

import random
from collections import deque

from hw.arch.lanes.lane_room import strip_units
from hw.arch.pcu import PcuProgram
from hw.arch.places import agcu_places
from hw.arch.pmu import PmuProgram
from hw.arch.ports import Direction, Link, UnitPort
from hw.numeric.division import ceil_div
from sw.chip_program import ChipProgram
from tests.hw.step_model import commands_of, moves_of
from tests.sw.naive_lanes import Direct, Fifo, Filtered, Lanes

__all__ = ["ends"]

STEPS = {0: (-1, 0), 1: (0, 1), 2: (1, 0), 3: (0, -1)}


class Marked(Filtered):
    """Buffer of weights: vectors with whether their packet begins a group of tiles."""

    begins = True

    def append(self, item):
        mine, (last, final) = self.mine, item
        super().append((last, self.begins))
        if last:
            self.begins = final or (self.begins and not mine)


class Chip:
    def __init__(self, program: ChipProgram, seed):
        self.rng = random.Random(seed)
        self.program, self.chip = program, program.config
        self.inputs, self.have, self.turns = {}, {}, {}
        self.sinks = {}  # (tokens, at, output) -> what takes there
        self.tries, self.dones = [], []
        for at, tile in program.tiles.items():
            for tokens, switch in ((False, tile.vectors), (True, tile.tokens)):
                for port in switch.ports.inputs:
                    self.inputs[tokens, at, port] = Fifo(2)
                    self.have[tokens, at, port] = set()
                for each in switch.outputs:
                    place = (tokens, at, each.output)
                    self.turns[place] = [deque((t.source, t.packets) for t in each.rotation), 0]
                    self.tries.append(lambda place=place: self.leave(place))
        for at, tile in program.tiles.items():
            if isinstance(tile.unit, PmuProgram):
                self.pmu(at, tile.unit)
            elif isinstance(tile.unit, PcuProgram):
                self.pcu(at, tile.unit)
        for index, agcu in program.agcus.items():
            self.agcu(agcu_places(self.chip)[index], agcu)

    def beyond(self, place):
        tokens, at, output = place
        if place in self.sinks:
            return self.sinks[place]
        if isinstance(output, Link):
            down, right = STEPS[output.direction]
            there = (at[0] + down, at[1] + right)
            return self.inputs.get((tokens, there, Link(output.direction.opposite, output.track)))
        return None

    def leave(self, place):
        tokens, at, output = place
        rotation, passed = self.turns[place]
        source, count = rotation[0]
        entrance = (tokens, at, source)
        target = self.beyond(place)
        if not self.inputs[entrance] or output in self.have[entrance] or target is None:
            return False
        item = self.inputs[entrance][0]
        if not (target.offer(item) if isinstance(target, Direct) else target.room):
            return False
        target.append(item)
        self.have[entrance].add(output)
        tile = self.program.tiles[at]
        switch = tile.tokens if tokens else tile.vectors
        if self.have[entrance] == set(switch.branches(source)):
            self.inputs[entrance].popleft()
            self.have[entrance].clear()
        if item[0]:
            self.turns[place][1] = passed + 1
            if passed + 1 == count:
                self.turns[place][1] = 0
                rotation.rotate(-1)
        return True

    def pass_on(self, fifo, entrance):
        def step():
            if not fifo or not self.inputs[entrance].room:
                return False
            self.inputs[entrance].append(fifo.popleft())
            return True

        self.tries.append(step)

    def pmu(self, at, unit):
        closed = [0] * 4
        token_fifos = [Fifo(2), Fifo(2)]
        for number, fifo in enumerate(token_fifos):
            self.pass_on(fifo, (True, at, UnitPort(number)))
        for number, engine in enumerate(unit.engines):
            if engine is None:
                continue
            moves = deque(moves_of(engine))
            self.dones.append(lambda moves=moves: not moves)
            others = [
                other
                for other in ((2, 3) if number < 2 else (0, 1))
                if unit.engines[other] and unit.engines[other].ring.buffer == engine.ring.buffer
            ]
            reports = [
                fifo
                for source, fifo in zip(unit.tokens, token_fifos)
                if int(source.value) == number + 1
            ]
            if number < 2:
                port = Filtered(2, engine.modulus, engine.index)
                self.sinks[False, at, UnitPort(number)] = port
                self.dones.append(lambda port=port: not port.fifo)
            else:
                fifo = Fifo(8)
                self.pass_on(fifo, (False, at, UnitPort(number - 2)))

            def step(
                number=number,
                engine=engine,
                moves=moves,
                others=others,
                reports=reports,
                port=port if number < 2 else None,
                fifo=None if number < 2 else fifo,
            ):
                if not moves:
                    return False
                move = moves[0]
                turn = move.lap * engine.ring.count + move.slot
                slack = engine.ring.count if number < 2 else 0
                if turn >= slack and not others:
                    return False
                if turn >= slack and min(closed[o] for o in others) + slack <= turn:
                    return False
                if move.closes and not all(report.room for report in reports):
                    return False
                if number < 2:
                    if not port.fifo:
                        return False
                    port.fifo.popleft()
                else:
                    if not fifo.room:
                        return False
                    fifo.append((move.last, move.final))
                moves.popleft()
                if move.closes:
                    closed[number] += 1
                    for report in reports:
                        report.append((True, True))
                return True

            self.tries.append(step)

    def lanes(self, at, unit):
        """Add the lanes of a PCU; returns the FIFO from which they take sums."""
        groups = self.chip.grid_columns // self.chip.pcu.lanes
        room = max(8, ceil_div(23, groups) + 1)
        strip = strip_units(width_bits=self.chip.width_bits, lanes=self.chip.pcu.lanes)
        lanes = Lanes(unit.lanes, self.chip.grid_columns, strip, room, unit.packet_vectors)
        auxiliary, activation = unit.auxiliary, unit.activation
        lanes.auxiliary = Filtered(32, auxiliary.modulus, auxiliary.index)
        self.sinks[False, at, UnitPort(2)] = lanes.auxiliary
        if not unit.sums:
            direct = Direct(lanes, activation.modulus, activation.index)
            self.sinks[False, at, UnitPort(0)] = direct

        def give():
            entrance = (False, at, UnitPort(0))
            if not lanes.out or not self.inputs[entrance].room:
                return False
            self.inputs[entrance].append(lanes.out.popleft())
            lanes.begun -= 1
            return True

        self.tries += [lanes.step, give]
        self.dones.append(lambda: lanes.done)
        return lanes.sums

    def pcu(self, at, unit):
        sums = self.lanes(at, unit) if unit.lanes else None
        if not unit.sums:
            return
        columns = self.chip.grid_columns
        act = Filtered(2, unit.activation.modulus, unit.activation.index)
        weights = Marked(max(columns, 4), unit.weight.modulus, unit.weight.index)
        self.sinks[False, at, UnitPort(0)] = act
        self.sinks[False, at, UnitPort(1)] = weights
        out = Fifo(2) if sums is None else sums
        if sums is None:
            self.pass_on(out, (False, at, UnitPort(0)))
        s = {"loaded": False, "first_tile": True, "first_pass": True, "rows": 0}
        s |= {"used": 0, "full": deque(), "sent": 0}

        def load():
            if s["loaded"] or len(weights.fifo) < columns:
                return False
            for _ in range(columns):
                _, begins = weights.fifo.popleft()
            s["loaded"], s["continues"] = True, unit.by_group and not begins
            return True

        def issue():
            if not act.fifo or (s["first_tile"] and not s["loaded"]):
                return False
            if s["first_pass"] and s["first_tile"] and s["used"] == 2:
                return False
            last, final = act.fifo.popleft()
            if s["first_tile"]:
                s["loaded"] = False
                s["used"] += s["first_pass"]
                if s["first_pass"] or not s["continues"]:
                    s["rows"] = 0
            s["rows"] += 1
            s["first_tile"] = last
            if last:
                s["first_pass"] = final
                if final:
                    s["full"].append(ceil_div(s["rows"], 2) if unit.out.bits == 16 else s["rows"])
            return True

        def drain():
            if not s["full"] or not out.room:
                return False
            s["full"][0] -= 1
            s["sent"] += 1
            final = not s["full"][0]
            last = final or sums is None and s["sent"] == unit.packet_vectors
            s["sent"] *= not last
            out.append((last, final))
            if final:
                s["full"].popleft()
                s["used"] -= 1
            return True

        self.tries += [load, issue, drain]
        self.dones.append(
            lambda: (
                s["first_tile"]
                and s["first_pass"]
                and not s["loaded"]
                and not (weights.fifo or act.fifo or s["full"] or out)
            )
        )

    def agcu(self, place, agcu):
        at = (place.row, place.column(self.chip))
        side = Direction[place.side.upper()]
        counts = [0] * self.chip.token_tracks

        class Count:
            def __init__(self, port):
                self.port = port

            @property
            def room(self):
                return counts[self.port] < 255

            def append(self, _):
                counts[self.port] += 1

        for port in range(self.chip.token_tracks):
            counts[port] = agcu.credits[port] if port < len(agcu.credits) else 0
            self.sinks[True, at, Link(side, port)] = Count(port)
        for issuers, store in ((agcu.loads, False), (agcu.stores, True)):
            streams = {}
            for number, issuer in enumerate(issuers):
                if issuer is None:
                    continue
                width = self.chip.width_bits // 8
                boxes = [
                    (agcu.descriptors[program.descriptor][0].box_bytes // width, program.waits)
                    for program, _ in commands_of(issuer)
                ]
                fifo = Fifo(2) if store else None
                if store:
                    self.sinks[False, at, Link(side, number)] = fifo
                    self.dones.append(lambda fifo=fifo: not fifo)
                streams[number] = [boxes[::-1], issuer, fifo]
            if streams:
                self.server(at, side, agcu, counts, streams, store)

    def server(self, at, side, agcu, counts, streams, store):
        state = {"box": None, "left": 0, "previous": 0}
        issuers = [issuer for _, issuer, _ in streams.values()]
        steady = not any(program.waits for issuer in issuers for program in issuer.programs)

        def ready(number):
            boxes = streams[number][0]
            return boxes and all(counts[w.port] >= w.tokens for w in boxes[-1][1])

        def step():
            if state["box"] is None:
                able = [number for number in streams if ready(number)]
                if not able:
                    return False
                if steady:
                    able.sort(key=lambda number: number == state["previous"])
                    number = able[0]
                else:
                    number = self.rng.choice(able)
                state["previous"] = number
                state["left"], waits = streams[number][0][-1]
                for wait in waits:
                    counts[wait.port] -= wait.tokens
                state["box"] = number
            number = state["box"]
            if store:
                if not streams[number][2]:
                    return False
                streams[number][2].popleft()
            else:
                target = self.inputs[False, at, Link(side, number)]
                if not target.room:
                    return False
                target.append((state["left"] == 1, False))
            state["left"] -= 1
            if not state["left"]:
                streams[number][0].pop()
                state["box"] = None
                if number in agcu.stored and store:
                    raise NotImplementedError("tokens of stored boxes")
            return True

        self.tries.append(step)
        self.dones.append(lambda: not any(boxes for boxes, *_ in streams.values()))

    def run(self):
        moving = True
        while moving:
            moving = False
            self.rng.shuffle(self.tries)
            for step in self.tries:
                for _ in range(self.rng.choice([1, 1, 3, 20])):
                    if not step():
                        break
                    moving = True
        return all(done() for done in self.dones) and not any(self.inputs.values())


def ends(program, seed):
    """Whether a run, in the random order of a seed, ends with nothing left over."""
    return Chip(program, seed).run()
