"""Cycles of merges in switches: what arrives passes at once if it is its turn.

Merges of short packets that send to one another are a group. They run a little later than the cycle
in which they could, so that their inputs have more payloads by then: a group passes whole rotations
in one step of the run, and single packets where these are not there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from graphlib import TopologicalSorter
from typing import Any

from sw.prove.machine import Channel
from sw.prove.merge_actors import Merge, MergeConsumer
from sw.timing.flow import Run
from sw.timing.timed_machine import Producer, TimedConsumer

__all__ = ["TimedMerge", "TimedMergeConsumer", "group_merges"]

#: Cycles by which the run of a merge is later than its payloads: those in which PCUs fill the way
#: to it. It delays no payload.
_LATER = 64
#: Cycles from the first payload of a rotation to one that comes apart from it: a single rotation of
#: such passes packet by packet.
_APART = 128
#: Payloads of a long packet, more than a way through switches holds: it passes in one step anyhow.
_LONG = 8


class TimedMerge(Producer, Merge):
    """Merge that passes a payload per cycle."""

    passing: Run
    sent: Run
    group: _Group | None = None
    #: Whether its inputs take payloads when they are sent: those of a group wait until it runs.
    passes = True

    def when(self) -> float:
        return self.free + (0 if self.group is None else _LATER)

    def advance(self) -> None:
        if self.group is None:
            super().advance()
        elif self.group.advance():
            self.machine.wake(self)
        else:
            self.passes = True
            super().advance()
            self.passes = False

    def turns(self) -> list[int]:
        """Vectors of each input in a rotation; none of tokens, or if packets are long or differ."""
        inputs: list[Any] = self.consumers
        found = []
        for count, each in zip(self._counts, inputs, strict=True):
            lengths = set() if each._lengths is None else {*each._lengths}
            if each.tap is None or len(lengths) != 1 or max(lengths) >= _LONG:
                return []
            found.append(count * lengths.pop())
        return found

    def leaves(self, channel: Channel, count: int) -> Run:
        first = max(self.free, self.passing.first)
        return Run(first, max(first + count - 1, self.passing.last), count)

    def left(self, channel: Channel, run: Run) -> None:
        self.sent = run
        self.free = run.last + 1


class TimedMergeConsumer(TimedConsumer, MergeConsumer):
    """Input of a merge whose payloads have cycles."""

    def demand(self) -> int:
        merge: Any = self._merge
        if merge.passes:
            return super().demand()
        if self.left():
            merge.machine.wake(merge)
        return 0

    def ready(self, ahead: int) -> float:
        merge: Any = self._merge
        if merge.consumers[merge.at] is not self:
            return 0.0
        return float(max(merge.free + ahead, merge.channel.opens(ahead)))

    def take(self, count: int) -> None:
        merge: Any = self._merge
        merge.passing = self.flow.arrived(count)
        super().take(count)
        self.flow.take(merge.sent)

    def rotations(self, packets: int) -> int:
        """Rotations of so many of its packets that are still to come."""
        assert self._lengths is not None
        return (len(self._lengths) - self._packet) // packets


class _Member:
    """A merge of a group.

    Parameters
    ----------
    merge : TimedMerge
    turns : list of int
        Payloads of each input in a rotation.
    """

    def __init__(self, merge: Any, turns: list[int]) -> None:
        self.merge, self.size = merge, sum(turns)
        self.inputs = list(zip(turns, merge._counts, merge.consumers, strict=True))
        #: Its rotations in one of the group.
        self.rate = 0
        #: Members that take what it sends, and that send to it, with the payloads of a rotation.
        self.takers: list[tuple[int, _Member]] = []
        self.senders: list[tuple[int, _Member]] = []
        #: Inputs to which no member sends, likewise.
        self.outer: list[tuple[int, Any]] = []

    def room(self) -> int:
        """Payloads that those outside the group could take now of what it sends."""
        channel, takers = self.merge.channel, [each.merge for _, each in self.takers]
        free = channel._together
        for tap in channel.taps:
            if tap.consumer.holder() not in takers:
                there = channel.written - tap.taken
                free = min(free, tap.room - there + (0 if there else tap.consumer.demand()))
        return int(free)

    def rotations(self) -> int:
        """Rotations of the group for which payloads are there, and room."""
        found = self.room() // (self.rate * self.size)
        for _, packets, each in self.inputs:
            found = min(found, each.rotations(packets * self.rate))
        for payloads, each in self.outer:
            needed = self.rate * payloads
            found = min(found, each.left() // needed, each.flow.steady() // needed)
        return found

    def send(self, rotations: int) -> None:
        """Take whole rotations from all inputs, and send them."""
        begin, first, last = 0, 0.0, 0.0
        for payloads, packets, each in self.inputs:
            run = each.flow.arrived(rotations * payloads)
            first, begin = max(first, run.first - begin), begin + payloads
            last = max(last, run.last + self.size - begin)
            each.tap.taken += rotations * payloads
            each.skip(rotations * packets)
        self.merge.passing = Run(first, last, rotations * self.size)
        self.merge.channel.push(rotations * self.size)

    def end(self, rotations: int) -> None:
        """Leave room at all inputs, once those that take what it sends have done so."""
        merge, sent = self.merge, self.merge.sent
        for _, taker in self.takers:
            # What is on the way to a taker leaves before that takes it.
            on_way = max(each.flow.capacity for _, _, each in taker.inputs)
            interval = (taker.merge.sent.last - taker.merge.sent.first) / sent.size
            late = taker.merge.sent.last - on_way * (1 + interval)
            sent = sent._replace(last=max(sent.last, late))
        merge.sent, merge.free, begin = sent, sent.last + 1, 0
        for payloads, _, each in self.inputs:
            end = begin + payloads
            each.flow.take(Run(sent.at(begin), sent.last + end - self.size, rotations * payloads))
            begin = end
            merge.machine.wake(each.tap.channel.producer)


class _Group:
    """Merges that send to one another, those that send before those that take it.

    Parameters
    ----------
    members : list of _Member
    """

    def __init__(self, members: list[_Member]) -> None:
        self._members = members
        self._outer = [end for each in members for _, end in each.outer]

    def advance(self) -> bool:
        """Pass whole rotations of all its merges; returns whether there were any."""
        rotations = min(each.rotations() for each in self._members)
        if rotations <= 0:
            return False
        first = [each.flow.next_arrival() for each in self._outer]
        if rotations == 1 and max(first) - min(first) > _APART:
            return False
        for each in self._members:
            each.send(rotations * each.rate)
        for each in reversed(self._members):
            each.end(rotations * each.rate)
        return True


def group_merges(merges: Iterable[TimedMerge]) -> None:
    """Group merges that send to one another.

    Those of long packets or packets of different lengths are in no group, nor those whose rotations
    have no common measure.
    """
    members = {each: _Member(each, turns) for each in merges if (turns := each.turns())}
    for each in members.values():
        for payloads, _, consumer in each.inputs:
            sender = members.get(consumer.tap.channel.producer)
            if sender is None:
                each.outer.append((payloads, consumer))
            else:
                each.senders.append((payloads, sender))
                sender.takers.append((payloads, each))
    order = TopologicalSorter(
        {each: [sender for _, sender in each.senders] for each in members.values()}
    )
    sorted_members = [*order.static_order()]
    rates: dict[_Member, Fraction] = {}
    for each in sorted_members:
        if each in rates:
            continue
        linked = _rates(each)
        rates |= linked
        if all(
            linked[sender] * sender.size == linked[member] * payloads
            for member in linked
            for payloads, sender in member.senders
        ):
            scale = math.lcm(*(rate.denominator for rate in linked.values()))
            group = _Group([member for member in sorted_members if member in linked])
            for member, rate in linked.items():
                member.rate, member.merge.group = int(rate * scale), group
                member.merge.passes = False


def _rates(first: _Member) -> dict[_Member, Fraction]:
    """Rotations of all merges linked to one, for each of its own."""
    found, waiting = {first: Fraction(1)}, [first]
    while waiting:
        each = waiting.pop()
        rate = found[each]
        others = [(other, rate * each.size / payloads) for payloads, other in each.takers]
        others += [(other, rate * payloads / other.size) for payloads, other in each.senders]
        for other, its in others:
            if other not in found:
                found[other] = its
                waiting.append(other)
    return found
