"""Lanes of a PCU a group of elements at a time, and the buffers in front of units."""

from collections import deque

from hw.arch.lanes.phase_word import AuxiliaryUse, Fetched, PhaseSource, ResultForm

__all__ = ["Direct", "Fifo", "Filtered", "Lanes"]


class Fifo(deque):
    def __init__(self, entries):
        super().__init__()
        self.entries = entries

    @property
    def room(self):
        return len(self) < self.entries


class Filtered:
    """Buffer behind a filter of packets."""

    def __init__(self, entries, modulus, index):
        self.fifo = Fifo(entries)
        self.modulus, self.index, self.number = modulus, index, 0

    @property
    def mine(self):
        return self.number % self.modulus == self.index

    @property
    def room(self):
        return self.fifo.room or not self.mine

    def append(self, item):
        if self.mine:
            self.fifo.append(item)
        self.number += item[0]


class Direct(Filtered):
    """Lanes behind a filter and nothing else: a vector stands in the switch until they end it."""

    def __init__(self, lanes, modulus, index):
        super().__init__(0, modulus, index)
        self.lanes = lanes

    def offer(self, item):
        if not self.mine:
            return True
        while self.lanes.source is PhaseSource.ACTIVATION:
            ended = self.lanes.issue(item)
            if ended is not False:
                if ended:
                    return True
                continue
            return False
        return False

    def append(self, item):
        self.number += item[0]


class Lanes:
    """Lanes of a PCU, one group of as many elements as a vector has words at a time."""

    def __init__(self, program, words, strip, room, cut):
        self.program, self.words, self.room, self.cut = program, words, room, cut
        #: Most groups of a strip; its vectors, and those that a joined phase has not passed over.
        self.most, self.strip, self.again = strip, [], deque()
        self.auxiliary = Filtered(32, 1, 0)
        self.sums, self.out = Fifo(2), deque()
        self.number = self.at = self.beside = self.filled = self.begun = self.sent = 0
        self.within = False  # a packet
        self.latched = False  # of the packet, the vector that leaves the stream behind a strip

    @property
    def phase(self):
        return self.program.phases[self.number]

    def joined(self, number):
        """Whether a phase reads what the one before it has kept."""
        phases = self.program.phases
        return number < len(phases) and Fetched.KEPT in (phases[number].y, phases[number].z)

    @property
    def source(self):
        """Stream whose vectors the phase takes, or None."""
        return None if self.joined(self.number) else self.phase.source

    def advance(self, vector, closes):
        """The phase after a vector: the next one behind a packet, or behind a strip."""
        alone = not self.joined(self.number) and not self.joined(self.number + 1)
        if not self.joined(self.number):
            self.strip.append(vector)
            if not alone and not closes:
                closes = len(self.strip) * self.phase.elements_per_word == self.most
        elif not alone:
            closes = not self.again
        if not closes:
            return
        if self.joined(self.number + 1):
            self.number += 1
            self.again = deque(self.strip)
            return
        over, self.strip = self.strip[-1][0], []
        if over:
            self.within = self.latched = False
            self.number = (self.number + 1) % len(self.program.phases)
            return
        while self.joined(self.number):
            self.number -= 1

    def issue(self, vector):
        """A group of a vector: whether it is the vector's last one; False if none can be issued."""
        phase, beside = self.phase, self.auxiliary.fifo
        latches = phase.auxiliary is AuxiliaryUse.LATCHED
        uses = phase.auxiliary is not AuxiliaryUse.NONE and not (latches and self.latched)
        sends = phase.result is not ResultForm.NONE
        if uses and not beside or sends and not self.filled and self.begun == self.room:
            return False
        self.at += 1
        ends = self.at == phase.elements_per_word
        closes = ends and vector[0]
        if sends:
            self.begun += not self.filled
            self.filled += 1
            if self.filled == phase.result.per_word or closes:
                self.filled = 0
                self.sent += 1
                last = closes or self.sent == self.cut
                self.sent *= not last
                self.out.append((last, closes and vector[1]))
        spread = {AuxiliaryUse.SPREAD: 1, AuxiliaryUse.SPREAD_PAIR: 2}.get(phase.auxiliary)
        if spread:
            self.beside += spread * ends
        elif phase.auxiliary is AuxiliaryUse.VECTOR:
            self.beside += self.words
        full = self.words * phase.auxiliary_form.per_word
        if uses and not latches and (closes or self.beside == full):
            beside.popleft()
            self.beside = 0
        self.at *= not ends
        self.within = True
        if ends:
            if self.joined(self.number):
                self.again.popleft()
            number = self.number
            self.advance(vector, closes)
            if uses and latches and self.number != number:
                beside.popleft()
                self.latched = True
        return True if ends else None

    def step(self):
        """A group of a vector that no switch holds."""
        if self.source is None:
            return self.issue(self.again[0]) is not False
        own = {
            PhaseSource.AUXILIARY: self.auxiliary.fifo,
            PhaseSource.ACCUMULATORS: self.sums,
            PhaseSource.STATISTICS: deque([(True, False)]),
            PhaseSource.ACTIVATION: (),
        }[self.phase.source]
        if not own:
            return False
        ended = self.issue(own[0])
        if ended:
            own.popleft()
        return ended is not False

    @property
    def done(self):
        phases = self.program.phases
        none = AuxiliaryUse.NONE
        first = next(
            n for n, each in enumerate(phases) if each.source.value or each.auxiliary is not none
        )
        left = self.auxiliary.fifo or self.sums or self.out or self.within
        return self.number == first and not left and not self.filled
