"""Random legal traffic of an AXI4 port, as wires cycle by cycle, and what happened in it."""

from collections import Counter, deque

from tests.hw.lib.axi_wires import ar, aw, b, r, w

__all__ = ["RandomTraffic", "beat_lanes"]

_CHANNELS = ("aw", "w", "b", "ar", "r")
_FIXED, _INCR, _WRAP = 0, 1, 2


def beat_lanes(address, beats, size, kind, bus_bytes):
    """Byte lanes of each beat of a burst, from the byte addresses that the beat may access."""
    step = 1 << size
    lowest = address // (beats * step) * (beats * step)
    for number in range(beats):
        start = address
        if number and kind != _FIXED:
            start = address // step * step + number * step
        if kind == _WRAP and start >= lowest + beats * step:
            start -= beats * step
        end = start // step * step + step
        yield sum(1 << byte % bus_bytes for byte in range(start, end))


class RandomTraffic:
    """A manager and a subordinate that keep every rule, in the order that chance gives.

    Members
    -------
    seen : Counter
        Events by name, to show that the traffic was varied.
    """

    def __init__(self, rng, *, data_bits, address_bits, id_bits, reads, writes, early_beats):
        self.rng = rng
        self.bytes = data_bits // 8
        self.address_bits = address_bits
        self.ids = 1 << id_bits
        self.most = {"ar": reads, "aw": writes}
        self.early_beats = early_beats
        self.seen = Counter()
        self.pressure = {}
        self.manager_waits = self.slow_reads = 0.0
        self.data_first = False
        self.offers = {}  # channel: (wires without ready, what follows when it is taken)
        self.planned = {"aw": deque(), "ar": deque()}
        self.unwritten = deque()  # [burst, lanes of its later beats], in the order of AW
        self.addressed = 0  # bursts accepted on AW, of those whose data are not complete
        self.early = 0
        self.complete = deque()  # early beats of each burst whose data are whole, not its address
        self.outstanding = {"aw": [], "ar": []}  # bursts in the order of acceptance
        self.last_read = None

    def cycles(self, count):
        """Wires of so many cycles, of which the first is idle."""
        yield {}
        for number in range(count):
            if number % 150 == 0:
                shares = [0.0, 0.1, 0.5, 0.9]
                self.pressure = {name: self.rng.choice(shares) for name in _CHANNELS}
                self.manager_waits = self.rng.choice(shares)
                self.data_first = self.rng.random() < 0.5
                self.slow_reads = self.rng.choice(shares)
            yield self._cycle()

    def _cycle(self):
        for channel, make in (
            *(("aw", self._offer_address), ("w", self._offer_data), ("b", self._offer_response)),
            *(("ar", self._offer_address), ("r", self._offer_read)),
        ):
            if channel not in self.offers:
                make(channel)
        # A channel that offers nothing may be ready all the same.
        wires, taken = {}, []
        for channel in _CHANNELS:
            ready = int(self.rng.random() >= self.pressure[channel])
            if channel in ("aw", "ar") and len(self.outstanding[channel]) == self.most[channel]:
                ready = 0
            if channel == "w" and not self.addressed and self.early == self.early_beats:
                ready = 0
            offer, after = self.offers.get(channel, ({}, None))
            wires |= offer | {f"{channel}ready": ready}
            if after and ready:
                taken.append((channel, after))
            self.seen[f"{channel} waits"] += bool(after and not ready)
        for channel, after in taken:
            del self.offers[channel]
            self.seen[channel] += 1
            after()
        return wires

    def _burst(self):
        rng = self.rng
        size = rng.randint(0, (self.bytes - 1).bit_length())
        kind = rng.choice([_FIXED, _INCR, _INCR, _WRAP])
        step = 1 << size
        address = rng.randrange(1 << self.address_bits)
        if rng.random() < 0.3:  # the end of a page
            address |= 0xFFF & -(rng.randint(1, 4) * step) & (1 << self.address_bits) - 1
        if kind == _WRAP:
            beats, address = rng.choice([2, 2, 4, 8, 16]), address // step * step
        elif kind == _FIXED:
            beats = rng.randint(1, rng.choice([3, 16]))
        else:
            most = min(256, (4096 - address // step * step % 4096) // step)
            beats = min(most, rng.choice([*range(1, 8)] * 4 + [most, rng.randint(1, most)]))
            self.seen["to the boundary"] += beats == most
        self.seen[f"kind {kind}"] += 1
        self.seen["unaligned"] += address % step != 0
        fields = {"addr": address, "len": beats - 1, "size": size, "burst": kind}
        fields |= {"id": rng.randrange(self.ids), "prot": rng.randrange(8)}
        return fields | {"cache": rng.choice([0, 1, 2, 3, 6, 7, 10, 11, 14, 15])}

    def _plan_write(self):
        fields = self._burst()
        names = ("addr", "len", "size", "burst")
        address, length, size, kind = (fields[name] for name in names)
        self.planned["aw"].append(fields)
        lanes = deque(beat_lanes(address, length + 1, size, kind, self.bytes))
        self.unwritten.append({"id": fields["id"], "lanes": lanes})

    def _offer_address(self, channel):
        if self.rng.random() < self.manager_waits:
            return
        if channel == "aw" and self.data_first and self.rng.random() < 0.97:
            return
        if channel == "ar":
            self.planned["ar"].append(self._burst())
        elif not self.planned["aw"]:
            self._plan_write()
        fields = self.planned[channel][0]
        wires = (aw if channel == "aw" else ar)(**fields)

        def after():
            self.planned[channel].popleft()
            burst = {"id": fields["id"], "left": fields["len"] + 1}
            if channel == "aw":
                # Data that came before are those of this burst and of later ones.
                self.addressed += 1
                burst = self._with_data(fields["id"])
            self.outstanding[channel].append(burst)

        del wires[f"{channel}ready"]
        self.offers[channel] = wires, after

    def _with_data(self, id):
        if self.complete:
            self.addressed -= 1
            self.early -= self.complete.popleft()
            return {"id": id, "done": True}
        return {"id": id, "done": False}

    def _offer_data(self, channel):
        if not self.unwritten or self.rng.random() < self.manager_waits:
            if self.rng.random() < 0.3 and len(self.planned["aw"]) < 3:
                self._plan_write()
            return
        burst = self.unwritten[0]
        lanes = burst["lanes"][0]
        last = len(burst["lanes"]) == 1
        chosen = lanes & self.rng.getrandbits(self.bytes) if self.rng.random() < 0.5 else lanes
        data = self.rng.getrandbits(8 * self.bytes)
        wires = w(strb=chosen, last=int(last), data=data)

        def after():
            burst["lanes"].popleft()
            burst["sent"] = burst.get("sent", 0) + 1
            if not self.addressed:
                self.seen["data before their address"] += 1
                self.early += 1
                burst["early"] = burst.get("early", 0) + 1
            if last:
                self.unwritten.popleft()
                if self.addressed:
                    self.addressed -= 1
                    self.early -= burst.get("early", 0)
                    self._first_open()["done"] = True
                else:
                    self.complete.append(burst["early"])

        del wires["wready"]
        self.offers[channel] = wires, after

    def _first_open(self):
        return next(each for each in self.outstanding["aw"] if not each["done"])

    def _choice(self, channel, fits):
        """One of the oldest bursts of each id that fits."""
        oldest = {}
        for burst in self.outstanding[channel]:
            oldest.setdefault(burst["id"], burst)
        able = [burst for burst in oldest.values() if fits(burst)]
        return self.rng.choice(able) if able else None

    def _offer_response(self, channel):
        if self.rng.random() < 0.9:  # so that responses queue
            return
        burst = self._choice("aw", lambda each: each["done"])
        if burst is None:
            return
        self.seen["responses out of order"] += burst is not self.outstanding["aw"][0]
        wires = b(id=burst["id"], resp=self.rng.choice([0, 0, 2, 3]))
        del wires["bready"]
        self.offers[channel] = wires, lambda: self.outstanding["aw"].remove(burst)

    def _offer_read(self, channel):
        if self.rng.random() < self.slow_reads:
            return
        burst = self._choice("ar", lambda each: True)
        if burst is None:
            return
        last = burst["left"] == 1
        self.seen["reads out of order"] += burst is not self.outstanding["ar"][0]
        self.seen["reads interleaved"] += self.last_read not in (None, id(burst))
        self.last_read = None if last else id(burst)
        data = self.rng.getrandbits(8 * self.bytes)
        wires = r(id=burst["id"], last=int(last), data=data, resp=self.rng.choice([0, 0, 2, 3]))

        def after():
            burst["left"] -= 1
            if last:
                self.outstanding["ar"].remove(burst)

        del wires["rready"]
        self.offers[channel] = wires, after
