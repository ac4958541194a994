"""Packing of unit operations into phases: which words a phase computes, and which are sent.

A phase runs a chain of at most one operation of each unit, each on the result of the one before and
on words that the phase fetches. So the operations of a region are covered by chains; a word that a
chain fetches and another one computes is sent and comes back, and costs a phase.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

from hw.arch.lanes.phase_word import FIXED_WORDS, Reduction, ResultForm
from hw.numeric.formats import fp32, int32
from sw.ir.affine import Axis
from sw.lane_codes.lane_words import Place, Send, UnitOperation, Word, WordTable

__all__ = ["Draft", "drafts_of"]

#: Costs of a packet that is sent and comes back, to the same program or to another one only, of a
#: phase of statistics, of a stream beside the source, and of another source; that of a phase over
#: packets is 1.
_TEMPORARY, _LEAVES = 0.1, 1.5
_LANE_PHASE, _BESIDE, _OTHER_SOURCE = 0.02, 0.002, 0.01

Chain = tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Draft:
    """A phase whose source and statistics are not chosen yet.

    Parameters
    ----------
    chain : tuple of UnitOperation
        Operations in their order; all but the first take `before` of the one before.
    words : tuple of str
        Their results.
    leaves : tuple of str
        Words that are fetched.
    place : Place
        FULL for a phase over packets, LANE for one over statistics.
    length : Axis or None
        Axis of the packet's vectors.
    reduction : (Reduction, str) or None
        Statistic of the results over the packet.
    send : Send or None
        Results that are sent.
    kept : str or None
        Word of a phase over statistics that a later phase reads.
    """

    chain: tuple[UnitOperation, ...]
    words: tuple[str, ...]
    leaves: tuple[str, ...]
    place: Place
    length: Axis | None = None
    reduction: tuple[Reduction, str] | None = None
    send: Send | None = None
    kept: str | None = None

    @functools.cached_property
    def constants(self) -> frozenset[int]:
        """Constants of its operations that words of a program hold."""
        named = {each for op in self.chain for each in op.operands if isinstance(each, int)}
        return frozenset(named.difference(FIXED_WORDS.values()))

    def taking(self, word: str, other: str) -> Draft:
        """The phase with another word in the place of one that it fetches."""
        if word not in self.leaves:
            return self

        def exchanged(words: tuple[Word, ...]) -> tuple[Any, ...]:
            return tuple(other if each == word else each for each in words)

        chain = tuple(
            dataclasses.replace(each, operands=exchanged(each.operands)) for each in self.chain
        )
        return dataclasses.replace(self, chain=chain, leaves=exchanged(self.leaves))


class _Cover:
    """Choice of a chain for every word that needs one."""

    def __init__(self, table: WordTable, returns: bool) -> None:
        self._table = table
        #: Costs of a packet that is sent and comes back, and of a statistic in a phase beside it.
        self.temporary, self._crossing = (_TEMPORARY, 0.0) if returns else (_LEAVES, _LEAVES)
        self._leaves: dict[Chain, tuple[str, ...]] = {}
        self._streams: dict[Chain, float] = {}
        self.chains = {word: tuple(self._options(word)) for word in table.operations}
        self._uses = Counter(name for ops in table.operations.values() for name in ops[0].names)
        #: Words whose packets are sent in any case, exact.
        sent = [*table.outputs, *table.casts.values()]
        self._sent = {each.word for each in sent if each.form is ResultForm.WORD}

    def _options(self, word: str) -> Iterator[Chain]:
        """Chains that end with a word."""
        chains: list[Chain] = [(word,)]
        for chain in chains:
            if self._runs(chain):
                yield chain
            if len(chain) == 3:
                continue
            later = {op for each in chain[1:] for op in self._table.operations[each][0].names}
            for name in self._table.operations[chain[0]][0].names:
                if name in self._table.operations and name not in later:
                    chains.append((name, *chain))

    def _runs(self, chain: Chain) -> bool:
        if not assigned(self._table, chain):
            return False
        operands = {each for word in chain for each in self._table.operations[word][0].operands}
        return self._table.fits(operands - set(chain[:-1]))

    def leaves(self, chain: Chain) -> tuple[str, ...]:
        """Words that a chain fetches."""
        if chain not in self._leaves:
            names = (name for word in chain for name in self._table.operations[word][0].names)
            found = dict.fromkeys(name for name in names if name not in chain[:-1])
            self._leaves[chain] = tuple(found)
        return self._leaves[chain]

    def choose(self) -> dict[str, Chain]:
        """Chain of each word with the least cost, shared among the uses of what it fetches."""
        cost: dict[str, float] = {}
        chosen: dict[str, Chain] = {}
        for word, chains in self.chains.items():
            costs = [self._cost(chain, cost) for chain in chains]
            best = min(range(len(chains)), key=lambda number: (costs[number], number))
            chosen[word] = chains[best]
            full = self._table.places[word] is Place.FULL
            own = 1 + self.temporary if full else _LANE_PHASE
            cost[word] = 0.0 if word in self._sent else costs[best] + own
        return chosen

    def _cost(self, chain: Chain, cost: dict[str, float]) -> float:
        """Cost of what a chain fetches."""
        leaves = self.leaves(chain)
        total = sum(cost.get(each, 0.0) / self._uses[each] for each in leaves)
        places = [self._table.places[each] for each in leaves]
        beside = places.count(Place.HELD) + places.count(Place.SPREAD)
        made = [each for each in leaves if each in self._table.operations]
        full = [each for each in made if self._table.places[each] is Place.FULL]
        if full and (beside or places.count(Place.FULL) == len(full) == 2):
            total += _OTHER_SOURCE
        total += self._crosses(leaves)
        return total + _BESIDE * (beside + max(0, places.count(Place.FULL) - 1))

    def streams(self, chain: Chain) -> float:
        """Cost of the packets that a chain fetches, and of statistics that leave for them."""
        if chain not in self._streams:
            leaves = self.leaves(chain)
            full = sum(self._table.places[each] is Place.FULL for each in leaves)
            self._streams[chain] = _BESIDE * full + self._crosses(leaves)
        return self._streams[chain]

    def _crosses(self, leaves: tuple[str, ...]) -> float:
        """Cost of statistics that leave their program because the phase takes a sent packet."""
        made = {self._table.places[each] for each in leaves if each in self._table.operations}
        lane = any(self._table.places[each] is Place.LANE for each in leaves)
        return self._crossing if Place.FULL in made and lane else 0.0


def assigned(table: WordTable, chain: Chain) -> tuple[UnitOperation, ...]:
    """Operations of a chain on units that are not the same; none if there are no such."""
    for choice in itertools.product(*(table.operations[word] for word in chain)):
        if len({each.unit for each in choice}) == len(chain):
            return choice
    return ()


@dataclasses.dataclass
class _Root:
    """A word that a phase computes, and what becomes of it."""

    chain: Chain
    reductions: list[tuple[Reduction, str]] = dataclasses.field(default_factory=list)
    sends: list[Send] = dataclasses.field(default_factory=list)
    fetched: bool = False


class _Extraction:
    """Phases of a cover: all words that outputs depend on, in an order in which they can run."""

    def __init__(self, table: WordTable, chains: dict[str, Chain], cover: _Cover) -> None:
        self._table, self._chains, self._cover = table, chains, cover
        self._open: dict[str, _Root] = {}
        for send in table.outputs:
            self._send(send)
        # Operations stand after what they fetch.
        for word in reversed(table.operations):
            if word in self._open:
                for leaf in cover.leaves(self._open[word].chain):
                    self._fetch(leaf)
        #: Words that phases compute, in order.
        self.words = tuple(word for word in table.operations if word in self._open)

    def _root(self, word: str) -> _Root:
        return self._open.setdefault(word, _Root(self._chains[word]))

    def _send(self, send: Send) -> None:
        root = self._root(send.word)
        if send not in root.sends:
            root.sends.append(send)

    def _fetch(self, leaf: str) -> None:
        if leaf in self._table.operations:
            self._root(leaf).fetched = True
        elif leaf in self._table.reductions:
            reduction, operand = self._table.reductions[leaf]
            root = self._root(operand)
            if (reduction, leaf) not in root.reductions:
                root.reductions.append((reduction, leaf))
        elif leaf in self._table.ports and self._table.ports[leaf].value in self._table.casts:
            self._send(self._table.casts[self._table.ports[leaf].value])

    @functools.cached_property
    def cost(self) -> float:
        """Cost of all phases."""
        total = 0.0
        for word, root in self._open.items():
            total += self._cover.streams(root.chain)
            if self._table.places[word] is Place.LANE:
                total += _LANE_PHASE * max(1, len(root.sends))
            else:
                exact = any(each.form is ResultForm.WORD for each in root.sends)
                temporaries = int(root.fetched and not exact)
                total += max(1, len(root.reductions), len(root.sends) + temporaries)
                total += temporaries * self._cover.temporary
        return total

    def drafts(self) -> tuple[Draft, ...]:
        """Phases in order."""
        return tuple(draft for word in self.words for draft in self._of(word, self._open[word]))

    def _of(self, word: str, root: _Root) -> Iterator[Draft]:
        place = self._table.places[word]
        draft = Draft(
            assigned(self._table, root.chain),
            root.chain,
            self._cover.leaves(root.chain),
            place,
            self._table.lengths[word],
        )
        sends: list[Send | None] = list(root.sends)
        if place is Place.LANE:
            # A statistic that is kept as well as sent.
            first = sends.pop(0) if sends else None
            yield dataclasses.replace(draft, send=first, kept=word if root.fetched else None)
            for send in sends:
                yield dataclasses.replace(draft, send=send)
            return
        if root.fetched:
            exact = [each for each in root.sends if each.form is ResultForm.WORD]
            sends += [] if exact else [self._temporary(word)]
        reductions: list[tuple[Reduction, str] | None] = list(root.reductions)
        for reduction, send in itertools.zip_longest(reductions, sends):
            yield dataclasses.replace(draft, reduction=reduction, send=send)

    def _temporary(self, word: str) -> Send:
        """Send of a word that only later phases take."""
        format_ = int32 if word in self._table.integers else fp32
        name = self._table.labels.get(word, word)
        taken = {each.value for each in (*self._table.outputs, *self._table.casts.values())}
        name = f"{name}#{format_.name}" if name in taken else name
        return Send(name, word, ResultForm.WORD, format_)


def drafts_of(table: WordTable, *, returns: bool = True) -> tuple[Draft, ...]:
    """Phases that send all outputs of a table, with few packets.

    Parameters
    ----------
    table : WordTable
    returns : bool
        Whether what a program sends may come back to it; if not, more is computed again.

    The chain of each word is first chosen by the cost of what it fetches, shared among its uses.
    Then one chain at a time is exchanged as long as that makes the whole cheaper.
    """
    cover = _Cover(table, returns)
    chains = cover.choose()
    best = _Extraction(table, chains, cover)
    better = True
    while better:
        better = False
        for word in best.words:
            for chain in cover.chains[word]:
                if chain == chains[word]:
                    continue
                other = chains | {word: chain}
                found = _Extraction(table, other, cover)
                if found.cost < best.cost:
                    best, chains, better = found, other, True
    return best.drafts()
