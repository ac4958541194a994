// An AXI4 memory at a port of the model. It answers IDs in any order and interleaved, waits at
// random, and ends the run at an access outside the bytes that may be read or written.

constexpr int AR = 0, R = 1, AW = 2, W = 3, B = 4, CHANNELS = 5;

struct Region {
    uint64_t start, end;  // addresses
    uint32_t code;        // response
};

// Settings of Python, and what has been counted for it.
struct MemoryState {
    uint8_t* data;            // from address `origin` on
    const uint8_t* readable;  // one byte per byte of memory, 0 if an access may not be for it
    const uint8_t* writable;
    const Region* failing;    // addresses whose beats are answered with an error
    uint64_t origin, size, failing_count, seed;
    uint32_t latency, jitter;
    uint32_t stall[CHANNELS];  // probability, times 2^32
    uint32_t interleaves;      // data of different IDs come in any order
    uint32_t early_reads;      // a read is of the cycle of its address, not of its data
    uint32_t late_writes;      // a write is visible at its response, not at its last beat
    int64_t beats[CHANNELS], first[CHANNELS], last[CHANNELS];  // transfers and their cycles
    int64_t owed, most_reads, most_writes;  // bursts outstanding, now and at most
    char violation[160];
};

class Memory {
public:
    Memory(int index, MemoryState* given)
        : port(index), bytes(memory_bytes[index]), state(given), random{given->seed * 0x9e3779b97f4a7c15ull | 1} {}

    // Drive the port for a cycle.
    void drive(Vtop& top, int64_t cycle) {
        now = cycle;
        pins.arready = moves(AR);
        pins.awready = moves(AW);
        pins.wready = moves(W);
        if (!pins.rvalid && moves(R)) show_read();
        if (!pins.bvalid && moves(B)) show_response();
        // Without valid, the others are garbage.
        if (!pins.rvalid) {
            for (int i = 0; i < bytes; i += 4) word[i / 4] = static_cast<uint32_t>(random.next());
            pins.rid = pins.rresp = pins.rlast = word[0] & 1;
        }
        if (!pins.bvalid) pins.bid = pins.bresp = random.next() & 1;
        drive_memory(top, port, pins, word);
    }

    // Take what the port shows in the cycle; whether anything has moved.
    bool take(Vtop& top) {
        MemoryOutputs out;
        sample_memory(top, port, out);
        bool moved = false;
        const auto count = [&](int channel, bool happens) {
            if (!happens) return false;
            if (state->beats[channel]++ == 0) state->first[channel] = now;
            state->last[channel] = now;
            return moved = true;
        };
        if (count(AR, out.arvalid && pins.arready)) begin_read(out);
        if (count(R, pins.rvalid && out.rready)) end_beat();
        if (count(AW, out.awvalid && pins.awready)) begin_write(out);
        if (count(W, out.wvalid && pins.wready)) {
            written.emplace_back();
            sample_memory_data(top, port, written.back().data, written.back().strobes);
        }
        if (count(B, pins.bvalid && out.bready)) {
            if (state->late_writes) commit(responses.front().burst);
            responses.pop_front();
            pins.bvalid = false;
        }
        while (!addressed.empty() && written.size() >= addressed.front().beats) respond();
        state->owed = reads + addressed.size() + responses.size() + (written.size() != 0);
        state->most_reads = std::max(state->most_reads, reads);
        state->most_writes =
            std::max<int64_t>(state->most_writes, addressed.size() + responses.size());
        return moved;
    }

    bool violated() const { return state->violation[0]; }

private:
    struct Beat {
        uint32_t data[32], strobes[4];
    };
    struct Burst {
        uint64_t address, beats;
        uint32_t id;
        int64_t due;
        std::vector<uint8_t> content;  // of a read, if it is of the cycle of its address
        std::vector<Beat> stores;      // of a write
    };
    struct Response {
        Burst burst;
        uint32_t code;
    };

    bool moves(int channel) { return !random.below(state->stall[channel]); }

    int64_t due_after(int64_t earlier) {
        const int64_t extra = state->jitter ? random.next() % (state->jitter + 1) : 0;
        return std::max<int64_t>(earlier, now + state->latency + extra);
    }

    void violate(const char* what, uint64_t address) {
        if (violated()) return;
        std::snprintf(state->violation, sizeof state->violation, "%s at address %#llx in cycle %lld",
                      what, static_cast<unsigned long long>(address), static_cast<long long>(now));
    }

    // Whether a burst is one that the memory serves.
    bool served(const char* what, uint64_t address, uint64_t beats, uint32_t size, uint32_t kind) {
        const uint64_t length = beats * bytes;
        const bool whole = kind == 1 && 1 << size == bytes && address % bytes == 0;
        const bool inside = address >= state->origin && address - state->origin <= state->size &&
                            length <= state->size - (address - state->origin);
        if (!whole) violate("burst that is not of whole aligned beats", address);
        else if (!inside) violate(what, address);
        return whole && inside;
    }

    uint32_t response(uint64_t start, uint64_t end) const {
        for (uint64_t i = 0; i < state->failing_count; ++i) {
            const Region& each = state->failing[i];
            if (start < each.end && each.start < end) return each.code;
        }
        return 0;
    }

    void begin_read(const MemoryOutputs& out) {
        Burst burst{out.araddr, out.arlen + 1, out.arid, 0, {}, {}};
        if (!served("read outside memory", burst.address, burst.beats, out.arsize, out.arburst)) return;
        const uint64_t start = burst.address - state->origin;
        for (uint64_t beat = 0; beat < burst.beats; ++beat) {
            const uint8_t* mask = state->readable + start + beat * bytes;
            if (!std::memchr(mask, 1, bytes)) violate("read of a beat without a byte to be read",
                                                      burst.address + beat * bytes);
        }
        if (state->early_reads) {
            burst.content.assign(state->data + start, state->data + start + burst.beats * bytes);
        }
        // With one order for all, the ID does not matter.
        const uint32_t order = state->interleaves ? burst.id : 0;
        burst.due = due_after(queues[order].empty() ? 0 : queues[order].back().due);
        queues[order].push_back(std::move(burst));
        ++reads;
    }

    void show_read() {
        uint32_t ready[16];
        int found = 0;
        for (auto& [order, bursts] : queues) {
            if (!bursts.empty() && bursts.front().due <= now && found < 16) ready[found++] = order;
        }
        if (!found) return;
        shown = ready[found == 1 ? 0 : random.next() % found];
        const Burst& burst = queues[shown].front();
        const uint64_t at = sent[shown] * bytes;
        const uint8_t* from = burst.content.empty()
                                  ? state->data + (burst.address - state->origin)
                                  : burst.content.data();
        std::memcpy(word, from + at, bytes);
        pins.rvalid = true;
        pins.rid = burst.id;
        pins.rresp = response(burst.address + at, burst.address + at + bytes);
        pins.rlast = sent[shown] + 1 == burst.beats;
    }

    void end_beat() {
        pins.rvalid = false;
        if (++sent[shown] < queues[shown].front().beats) return;
        queues[shown].pop_front();
        sent[shown] = 0;
        --reads;
    }

    void begin_write(const MemoryOutputs& out) {
        Burst burst{out.awaddr, out.awlen + 1, out.awid, 0, {}, {}};
        if (served("write outside memory", burst.address, burst.beats, out.awsize, out.awburst)) {
            addressed.push_back(std::move(burst));
        }
    }

    // The beats of a burst, and its address, are there.
    void respond() {
        Response made{std::move(addressed.front()), 0};
        addressed.pop_front();
        Burst& burst = made.burst;
        burst.stores.assign(written.begin(), written.begin() + burst.beats);
        written.erase(written.begin(), written.begin() + burst.beats);
        made.code = response(burst.address, burst.address + burst.beats * bytes);
        burst.due = due_after(responses.empty() ? 0 : responses.back().burst.due) + 1;
        check(burst);
        if (!state->late_writes) commit(burst);
        responses.push_back(std::move(made));
    }

    template <typename Function> void each_stored(const Burst& burst, const Function& function) {
        for (uint64_t beat = 0; beat < burst.beats; ++beat) {
            const auto* data = reinterpret_cast<const uint8_t*>(burst.stores[beat].data);
            for (int i = 0; i < bytes; ++i) {
                if (burst.stores[beat].strobes[i / 32] >> i % 32 & 1) {
                    function(burst.address - state->origin + beat * bytes + i, data[i]);
                }
            }
        }
    }
    void check(const Burst& burst) {
        each_stored(burst, [&](uint64_t at, uint8_t) {
            if (!state->writable[at]) violate("write of a byte not to be written", state->origin + at);
        });
    }
    void commit(const Burst& burst) {
        each_stored(burst, [&](uint64_t at, uint8_t byte) { state->data[at] = byte; });
    }

    void show_response() {
        if (responses.empty() || responses.front().burst.due > now) return;
        pins.bvalid = true;
        pins.bid = responses.front().burst.id;
        pins.bresp = responses.front().code;
    }

public:
    const int port;

private:
    const int bytes;
    MemoryState* const state;
    Random random;
    MemoryInputs pins{};
    uint32_t word[33] = {};
    int64_t now = 0, reads = 0;
    uint32_t shown = 0;
    std::map<uint32_t, std::deque<Burst>> queues;  // of reads, by order
    std::map<uint32_t, uint64_t> sent;             // beats of the first of each
    std::deque<Burst> addressed;
    std::deque<Beat> written;
    std::deque<Response> responses;
};
