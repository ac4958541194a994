// Plays the host and the memory of a whole chip. The generated part, which names the ports, is put
// in by sim/native/chip_model.py. Interfaces and rules: docs/native.md.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include <verilated.h>
#include "part.h"

namespace {

struct Pin {
    void* data = nullptr;
    std::size_t bytes = 0;
    template <typename T> void bind(T& port) {
        data = &port;
        bytes = sizeof(T);
    }
    bool high() const { return *static_cast<uint8_t*>(data); }
    void drive(bool level) const { *static_cast<uint8_t*>(data) = level; }
    uint64_t value() const {
        uint64_t word = 0;
        std::memcpy(&word, data, bytes < 8 ? bytes : 8);
        return word;
    }
    void set(uint64_t word) const { std::memcpy(data, &word, bytes < 8 ? bytes : 8); }
};

struct HostPins {
    Pin awaddr, awprot, awvalid, awready, wdata, wstrb, wvalid, wready, bresp, bvalid, bready;
    Pin araddr, arprot, arvalid, arready, rdata, rresp, rvalid, rready;
};

struct MemoryPins {
    Pin araddr, arlen, arsize, arburst, arid, arvalid, arready, rdata, rresp, rid, rlast, rvalid,
        rready;
    Pin awaddr, awlen, awsize, awburst, awid, awvalid, awready, wdata, wstrb, wlast, wvalid, wready,
        bresp, bid, bvalid, bready;
};

template <typename Pins> void zero_pins(Pins& pins) {
    static_assert(sizeof(Pins) % sizeof(Pin) == 0);
    auto* pin = reinterpret_cast<Pin*>(&pins);
    for (std::size_t at = 0; at < sizeof(Pins) / sizeof(Pin); ++at) {
        if (pin[at].data) std::memset(pin[at].data, 0, pin[at].bytes);
    }
}

struct Random {
    uint64_t state = 1;
    uint64_t next() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state;
    }
    bool below(uint32_t threshold) { return threshold && (next() >> 32) < threshold; }
};

constexpr uint64_t scramble(uint64_t word) {
    word += 0x9e3779b97f4a7c15ull;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ull;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebull;
    return (word ^ (word >> 31)) | 1;
}

// A second thread that shares the parts of a phase. One claims them from the front, the other from
// the back: each meets the same parts again, whose state is in its core's cache, and one that the
// system suspends delays the other by one part at most, not by half of them.
class Helper {
public:
    ~Helper() { stop(); }
    void start(VerilatedContext* context) {
        if (std::thread::hardware_concurrency() < 2) return;
        leave = false;
        thread = std::thread([this, context] {
            Verilated::threadContextp(context);
            for (uint64_t seen = round; !leave;) {
                for (int spin = 0; round.load(std::memory_order_acquire) == seen && !leave; ++spin) {
                    if (spin > 2000) std::this_thread::yield();
                }
                if (leave) return;
                seen = round.load(std::memory_order_acquire);
                work(true);
            }
        });
    }
    void stop() {
        leave = true;
        if (thread.joinable()) thread.join();
        thread = {};
    }
    template <typename Function> void each(int parts, const Function& function) {
        if (!thread.joinable() || parts < 2) {
            for (int part = 0; part < parts; ++part) function(part);
            return;
        }
        task = std::cref(function);
        done.store(0, std::memory_order_relaxed);
        // This store opens the round: until then every claim, however late, finds nothing left.
        left.store({0, parts}, std::memory_order_release);
        round.fetch_add(1, std::memory_order_release);
        work(false);
        for (int spin = 0; done.load(std::memory_order_acquire) < parts; ++spin) {
            if (spin > 2000) std::this_thread::yield();
        }
    }

private:
    struct Range {
        int32_t front, back;
    };
    int claim(bool from_back) {  // -1: nothing is left
        Range now = left.load(std::memory_order_acquire);
        for (;;) {
            if (now.front >= now.back) return -1;
            const Range then{now.front + !from_back, now.back - from_back};
            if (left.compare_exchange_weak(now, then, std::memory_order_acq_rel)) {
                return from_back ? then.back : now.front;
            }
        }
    }
    void work(bool from_back) {
        for (int part; (part = claim(from_back)) >= 0;) {
            task(part);
            done.fetch_add(1, std::memory_order_release);
        }
    }
    std::thread thread;
    std::function<void(int)> task;
    std::atomic<uint64_t> round{0};
    std::atomic<Range> left{Range{0, 0}};
    std::atomic<int> done{0};
    std::atomic<bool> leave{false};
};

// Whether the helper pays: it does on an idle machine, not on a busy one. Now and then both ways
// are timed; nothing that is simulated depends on the choice.
class Pace {
public:
    void step(Helper& helper, VerilatedContext* context) {
        if (left--) return;
        const Clock::time_point now = Clock::now();
        if (timed) seconds[helping] = std::chrono::duration<double>(now - since).count();
        // Of each 16 stretches the first two try both ways.
        const bool wanted = turn % 16 < 2 ? turn % 2 : seconds[1] < seconds[0];
        ++turn;
        if (wanted != helping || !timed) {
            helper.stop();
            if (wanted) helper.start(context);
        }
        helping = wanted;
        left = stretch - 1;
        timed = true;
        since = Clock::now();
    }
    void pause(Helper& helper) {  // the helper waits by spinning: it must not outlast a run
        helper.stop();
        timed = false;
        left = 0;
    }

private:
    using Clock = std::chrono::steady_clock;
    static constexpr int stretch = 512;
    int left = 0;
    unsigned turn = 0;
    bool helping = false, timed = false;
    double seconds[2] = {0, 0};
    Clock::time_point since;
};

enum Channel { AR, R, AW, W, B, channels };
constexpr const char* channel_name[channels] = {"AR", "R", "AW", "W", "B"};
enum Direction { no_error, on_read, on_write, on_launch, directions };
constexpr int most_errors = 3;
enum Response { okay = 0, slverr = 2, decerr = 3 };
enum SampleOf { kernel_begins, within_kernel, kernel_ends };
constexpr uint8_t counter_words = 8;
constexpr uint64_t boundary = 4096;
constexpr int incrementing = 1;

}  // namespace

extern "C" {

struct PlantedError {
    int64_t beat;  // of its direction
    uint32_t direction;
    uint32_t response;
};

struct Region {  // bytes from first to before end
    uint64_t first, end;
};

struct Conditions {
    uint8_t* memory;
    uint64_t memory_bytes;
    const Region* regions;  // what bursts may touch; all of memory if there is none
    uint64_t region_count;
    uint64_t seed;
    PlantedError errors[most_errors];
    uint32_t latency;
    uint32_t jitter;
    uint32_t stall[channels];  // probability, times 2^32, that memory's side pauses in a cycle
};

// Beats by channel, and what is owed; cycles count from the model's first.
struct PortState {
    int64_t beats[channels];
    int64_t written_bytes;
    int64_t reads_owed;
    int64_t writes_owed;
};

// Cycles of a port, counted while samples are taken: memory owes read data, and shows none; it shows
// some that the chip does not take; it does not take an address, or data, that the chip offers.
struct PortWaits {
    int64_t read_owed, read_held, address_held, write_held;
};

}  // extern "C"

//PORTS//

namespace {

struct Held {  // what a manager offers and must not change
    bool waits = false;
    std::vector<uint8_t> payload;
};

struct ReadBurst {
    int64_t due;
    uint64_t address;
    int beats, at;
    uint64_t id;
    std::vector<uint8_t> data;  // as it was when the address was taken
};

struct WriteBurst {
    uint64_t address;
    int beats, at;
    uint64_t id;
    int64_t due;
    Response response;
    std::vector<uint8_t> data, strobes;
};

struct Port {
    std::string name;
    MemoryPins pins;
    PortState state;
    PortWaits waits;
    Random pace[channels];
    Random jitter;
    Held held[channels];
    std::deque<ReadBurst> reads;
    std::deque<WriteBurst> writes;   // addresses taken, data not complete
    std::deque<WriteBurst> answers;  // complete, B to come
    std::deque<std::vector<uint8_t>> early;  // write beats before their address
    bool has_writes = false;
    bool memory = false;  // its beats count for the planted error
    std::size_t bytes = 0;
};

struct Model {
    std::unique_ptr<VerilatedContext> context{new VerilatedContext};
    std::unique_ptr<Rest> top;
    std::vector<std::unique_ptr<Part>> parts;
    HostPins host;
    Port ports[port_count];
    Conditions conditions{};
    int64_t cycle = 0;
    int64_t moved = 0;  // cycle of the last beat on any port
    int64_t beats[directions] = {};
    int errors_met = 0;
    std::string fault;
    std::mutex failing;
    Helper helper;  // after the parts: it ends before they do
    Pace pace;
    Random garbage;
    int64_t every = 0;  // cycles from sample to sample; 0: none are taken
    int64_t kernel = -1;  // first cycle of the kernel that runs
    std::vector<int64_t> samples;
#ifdef TILEWRIGHT_TRACE
    std::unique_ptr<VerilatedVcdC> trace;
#endif

    void fail(const std::string& text) {
        const std::lock_guard<std::mutex> guard{failing};
        if (fault.empty()) fault = text + " in cycle " + std::to_string(cycle);
    }

    // The low half of a cycle: everything follows its inputs. Ports of parts come from registers,
    // mostly, so one round settles them; the rounds are there for what does not.
    void low() {
        Verilated::threadContextp(context.get());
        top->clk = 0;
        for (int round = 0; round < 64; ++round) {
            top->eval();
            std::atomic<bool> changed{false};
            helper.each(static_cast<int>(parts.size()), [&](int index) {
                Part& part = *parts[index];
                if (!Part::move(part.inputs) && round) return;
                part.clock(false);
                part.eval();
                if (Part::move(part.outputs)) changed = true;
            });
            if (!changed) return;
        }
        fail("Ports of parts do not settle");
    }

    // The rising edge: every model takes what has settled.
    void high() {
        top->clk = 1;
        top->eval();
        helper.each(static_cast<int>(parts.size()), [&](int index) {
            Part& part = *parts[index];
            part.clock(true);
            part.eval();
            Part::move(part.outputs);
        });
    }

    bool inside(uint64_t address, uint64_t bytes) const {
        return address <= conditions.memory_bytes && bytes <= conditions.memory_bytes - address;
    }

    bool touches_region(uint64_t first, uint64_t end) const {
        const Region* regions = conditions.regions;
        return conditions.region_count == 0 ||
               std::any_of(regions, regions + conditions.region_count, [&](const Region& each) {
                   return each.first < end && first < each.end;
               });
    }

    void spoil(const Pin& pin) {  // what is not valid may be anything
        auto* bytes = static_cast<uint8_t*>(pin.data);
        for (std::size_t at = 0; at < pin.bytes; at += 8) {
            const uint64_t word = garbage.next();
            std::memcpy(bytes + at, &word, pin.bytes - at < 8 ? pin.bytes - at : 8);
        }
    }

    void forget() {  // as after a reset
        for (Port& port : ports) {
            port.reads.clear();
            port.writes.clear();
            port.answers.clear();
            port.early.clear();
            for (Held& each : port.held) each.waits = false;
            port.pins.arready.drive(false);
            port.pins.rvalid.drive(false);
            if (!port.has_writes) continue;
            port.pins.awready.drive(false);
            port.pins.wready.drive(false);
            port.pins.bvalid.drive(false);
        }
    }

    void begin(const Conditions& given) {
        conditions = given;
        for (int64_t& count : beats) count = 0;
        errors_met = 0;
        moved = cycle;
        garbage.state = scramble(given.seed);
        for (int i = 0; i < port_count; ++i) {
            Port& port = ports[i];
            port.state = PortState{};
            port.waits = PortWaits{};
            const uint64_t base = given.seed * 64 * (port_count + 1) + 64 * (i + 1);
            port.jitter.state = scramble(base);
            for (int c = 0; c < channels; ++c) port.pace[c].state = scramble(base + 1 + c);
        }
    }

    int64_t answer_cycle(Port& port) {
        const uint64_t more =
            conditions.jitter ? port.jitter.next() % (conditions.jitter + 1ull) : 0;
        return cycle + conditions.latency + static_cast<int64_t>(more);
    }

    // Response of the next beat of a direction, which is `usual` unless an error is planted there.
    Response response_of(Direction direction, Response usual) {
        const int64_t beat = beats[direction]++;
        for (const PlantedError& error : conditions.errors) {
            if (error.direction == direction && error.beat == beat) {
                ++errors_met;
                return static_cast<Response>(error.response);
            }
        }
        return usual;
    }

    // Inputs of this cycle, from what was taken in earlier ones.
    void drive(Port& port) {
        MemoryPins& pins = port.pins;
        pins.arready.drive(!port.pace[AR].below(conditions.stall[AR]));
        if (!pins.rvalid.high() && !port.reads.empty() && port.reads.front().due <= cycle &&
            !port.pace[R].below(conditions.stall[R])) {
            ReadBurst& burst = port.reads.front();
            const uint64_t address = burst.address + burst.at * port.bytes;
            const Response response = response_of(port.memory ? on_read : on_launch,
                                                  inside(address, port.bytes) ? okay : decerr);
            if (response == okay) std::memcpy(pins.rdata.data, &burst.data[burst.at * port.bytes],
                                              port.bytes);
            else spoil(pins.rdata);
            pins.rresp.set(response);
            pins.rid.set(burst.id);
            pins.rlast.drive(burst.at + 1 == burst.beats);
            pins.rvalid.drive(true);
        }
        if (!port.has_writes) return;
        pins.awready.drive(!port.pace[AW].below(conditions.stall[AW]));
        pins.wready.drive(!port.pace[W].below(conditions.stall[W]));
        if (!pins.bvalid.high() && !port.answers.empty() && port.answers.front().due <= cycle &&
            !port.pace[B].below(conditions.stall[B])) {
            const WriteBurst& burst = port.answers.front();
            if (burst.response == okay) {  // visible now and not before
                for (std::size_t at = 0; at < burst.data.size(); ++at) {
                    if (burst.strobes[at / 8] >> (at % 8) & 1) {
                        conditions.memory[burst.address + at] = burst.data[at];
                    }
                }
            }
            pins.bresp.set(burst.response);
            pins.bid.set(burst.id);
            pins.bvalid.drive(true);
        }
    }

    void take_write_beat(Port& port, WriteBurst& burst, const uint8_t* beat) {
        const std::size_t strobe_bytes = (port.bytes + 7) / 8;
        const uint8_t* strobes = beat + port.bytes;
        const bool last = strobes[strobe_bytes];
        const uint64_t address = burst.address + burst.at * port.bytes;
        for (std::size_t at = 0; at < port.bytes; ++at) {
            if (!(strobes[at / 8] >> (at % 8) & 1)) continue;
            ++port.state.written_bytes;
            if (!inside(address + at, 1) && burst.response == okay) burst.response = decerr;
        }
        burst.data.insert(burst.data.end(), beat, beat + port.bytes);
        burst.strobes.insert(burst.strobes.end(), strobes, strobes + strobe_bytes);
        burst.response = response_of(on_write, burst.response);
        ++burst.at;
        if (last != (burst.at == burst.beats)) {
            fail(port.name + ": WLAST at beat " + std::to_string(burst.at) + " of a burst of " +
                 std::to_string(burst.beats));
        }
    }

    void finish_writes(Port& port) {
        while (!port.writes.empty()) {
            WriteBurst& burst = port.writes.front();
            while (!port.early.empty() && burst.at < burst.beats) {
                take_write_beat(port, burst, port.early.front().data());
                port.early.pop_front();
            }
            if (burst.at < burst.beats) return;
            burst.due = answer_cycle(port);
            port.answers.push_back(std::move(burst));
            port.writes.pop_front();
        }
    }

    // A manager's offer: whether it crosses; its payload must stay until it does.
    bool crosses(Port& port, Channel channel, bool valid, bool ready,
                 std::initializer_list<const Pin*> payload) {
        Held& held = port.held[channel];
        if (!valid) {
            if (held.waits) fail(port.name + ": " + channel_name[channel] + " withdrew an offer");
            held.waits = false;
            return false;
        }
        if (!held.waits && ready) return true;
        std::size_t at = 0;
        bool changed = false;
        if (!held.waits) held.payload.clear();
        for (const Pin* pin : payload) {
            const auto* bytes = static_cast<const uint8_t*>(pin->data);
            if (!held.waits) held.payload.insert(held.payload.end(), bytes, bytes + pin->bytes);
            else changed |= std::memcmp(&held.payload[at], bytes, pin->bytes) != 0;
            at += pin->bytes;
        }
        if (changed) fail(port.name + ": " + channel_name[channel] + " changed an offer");
        held.waits = !ready;
        return ready;
    }

    void check_burst(Port& port, Channel channel, const Pin& address, const Pin& length,
                     const Pin& size, const Pin& burst) {
        const uint64_t beats = length.value() + 1;
        const std::string name = port.name + ": " + channel_name[channel] + " ";
        if ((1ull << size.value()) != port.bytes) fail(name + "is not as wide as the port");
        if (burst.value() != incrementing) fail(name + "is not an INCR burst");
        if (address.value() % port.bytes) fail(name + "begins within a beat");
        if (address.value() % boundary + beats * port.bytes > boundary) {
            fail(name + "crosses 4 KiB");
        }
        for (uint64_t beat = 0; beat < beats; ++beat) {
            const uint64_t first = address.value() + beat * port.bytes;
            if (!touches_region(first, first + port.bytes)) {
                fail(name + "has a beat at " + std::to_string(first) +
                     ", in which the launch has no byte");
            }
        }
    }

    // What crosses in this cycle, after the inputs have settled.
    void take(Port& port) {
        MemoryPins& pins = port.pins;
        PortState& state = port.state;
        if (crosses(port, AR, pins.arvalid.high(), pins.arready.high(),
                    {&pins.araddr, &pins.arlen, &pins.arsize, &pins.arburst, &pins.arid})) {
            check_burst(port, AR, pins.araddr, pins.arlen, pins.arsize, pins.arburst);
            ReadBurst burst{answer_cycle(port), pins.araddr.value(),
                            static_cast<int>(pins.arlen.value()) + 1, 0, pins.arid.value(), {}};
            burst.data.resize(burst.beats * port.bytes);
            for (std::size_t at = 0; at < burst.data.size(); at += port.bytes) {
                if (inside(burst.address + at, port.bytes)) {
                    std::memcpy(&burst.data[at], conditions.memory + burst.address + at,
                                port.bytes);
                }
            }
            port.reads.push_back(std::move(burst));
            ++state.reads_owed;
            ++state.beats[AR];
            moved = cycle;
        }
        if (pins.rvalid.high() && pins.rready.high()) {
            ReadBurst& burst = port.reads.front();
            if (++burst.at == burst.beats) {
                port.reads.pop_front();
                --state.reads_owed;
            }
            ++state.beats[R];
            moved = cycle;
            ended |= 1u << R;
        }
        if (!port.has_writes) return;
        if (crosses(port, AW, pins.awvalid.high(), pins.awready.high(),
                    {&pins.awaddr, &pins.awlen, &pins.awsize, &pins.awburst, &pins.awid})) {
            check_burst(port, AW, pins.awaddr, pins.awlen, pins.awsize, pins.awburst);
            port.writes.push_back({pins.awaddr.value(), static_cast<int>(pins.awlen.value()) + 1, 0,
                                   pins.awid.value(), 0, okay, {}, {}});
            ++state.writes_owed;
            ++state.beats[AW];
            moved = cycle;
        }
        if (crosses(port, W, pins.wvalid.high(), pins.wready.high(),
                    {&pins.wdata, &pins.wstrb, &pins.wlast})) {
            std::vector<uint8_t> beat(port.bytes + (port.bytes + 7) / 8 + 1);
            std::memcpy(beat.data(), pins.wdata.data, port.bytes);
            std::memcpy(beat.data() + port.bytes, pins.wstrb.data, (port.bytes + 7) / 8);
            beat.back() = pins.wlast.high();
            port.early.push_back(std::move(beat));
            ++state.beats[W];
            moved = cycle;
        }
        finish_writes(port);
        if (pins.bvalid.high() && pins.bready.high()) {
            port.answers.pop_front();
            --state.writes_owed;
            ++state.beats[B];
            moved = cycle;
            ended |= 1u << B;
        }
    }

    unsigned ended = 0;  // answers of the port at hand that crossed: their valid falls

    // A row of the samples: cycle, what happens in it, eight words per unit, six per port.
    void take_sample(SampleOf what) {
        samples.push_back(cycle);
        samples.push_back(what);
        for (auto& part : parts) {
            if (!part->number) continue;
            const uint8_t shown = *part->number;
            for (uint8_t word = 0; word < counter_words; ++word) {
                *part->number = word;
                part->eval();
                samples.push_back(static_cast<int64_t>(*part->counter));
            }
            *part->number = shown;
            part->eval();
        }
        for (Port& port : ports) {
            for (const int64_t count : {port.state.beats[R], port.state.beats[W],
                                        port.waits.read_owed, port.waits.read_held,
                                        port.waits.address_held, port.waits.write_held}) {
                samples.push_back(count);
            }
        }
    }

    void watch() {
        for (Port& port : ports) {
            const MemoryPins& pins = port.pins;
            const bool shown = pins.rvalid.high();
            port.waits.read_owed += port.state.reads_owed && !shown;
            port.waits.read_held += shown && !pins.rready.high();
            bool held = pins.arvalid.high() && !pins.arready.high();
            if (port.has_writes) {
                held |= pins.awvalid.high() && !pins.awready.high();
                port.waits.write_held += pins.wvalid.high() && !pins.wready.high();
            }
            port.waits.address_held += held;
        }
        for (auto& part : parts) {
            if (!part->runs) continue;
            const bool runs = *part->runs;
            if (runs && kernel < 0) {
                kernel = cycle;
                take_sample(kernel_begins);
            } else if (!runs && kernel >= 0) {
                kernel = -1;
                take_sample(kernel_ends);
            } else if (runs && (cycle - kernel) % every == 0) {
                take_sample(within_kernel);
            }
            break;  // all run at the same time
        }
    }

    void settle() {
        for (Port& port : ports) drive(port);
        low();
        if (every) watch();
#ifdef TILEWRIGHT_TRACE
        if (trace) trace->dump(static_cast<uint64_t>(2 * cycle));
#endif
    }

    void edge() {
        unsigned crossed[port_count];
        for (int i = 0; i < port_count; ++i) {
            ended = 0;
            take(ports[i]);
            crossed[i] = ended;
        }
        high();
#ifdef TILEWRIGHT_TRACE
        if (trace) trace->dump(static_cast<uint64_t>(2 * cycle + 1));
#endif
        ++cycle;
        for (int i = 0; i < port_count; ++i) {
            MemoryPins& pins = ports[i].pins;
            if (crossed[i] >> R & 1) {
                pins.rvalid.drive(false);
                spoil(pins.rdata);
            }
            if (crossed[i] >> B & 1) pins.bvalid.drive(false);
        }
    }

    void reset() {
        forget();
        host.awvalid.drive(false);
        host.wvalid.drive(false);
        host.arvalid.drive(false);
        host.bready.drive(true);
        host.rready.drive(true);
        top->rst = 1;
        for (int each = 0; each < 4; ++each) {
            low();
            high();
            ++cycle;
        }
        for (Port& port : ports) {
            if (port.pins.arvalid.high()) fail(port.name + ": AR is valid in reset");
            if (port.has_writes && (port.pins.awvalid.high() || port.pins.wvalid.high())) {
                fail(port.name + ": AW or W is valid in reset");
            }
        }
        top->rst = 0;
    }
};

Model* running = nullptr;  // whose eval may report a failed assertion

}  // namespace

// Instead of ending the process.
void vl_fatal(const char* file, int line, const char*, const char* text) VL_MT_UNSAFE {
    if (running) running->fail(std::string(text) + " in line " + std::to_string(line) + " of " + file);
}
void vl_stop(const char* file, int line, const char* scope) VL_MT_UNSAFE {
    vl_fatal(file, line, scope, "Assertion failed");
}

extern "C" {

void* chip_new(uint64_t seed) {
    auto* model = new Model;
    running = model;
    model->context->randReset(2);  // garbage in every register and memory without a reset
    model->context->randSeed(static_cast<int>(seed % 0x7fffffff) + 1);
    Verilated::threadContextp(model->context.get());
#ifdef TILEWRIGHT_TRACE
    model->context->traceEverOn(true);
#endif
    model->top.reset(new Rest{model->context.get()});
    bind_parts(*model->top, model->context.get(), model->parts);
    bind_host(*model->top, model->host);
    bind_ports(*model->top, model->ports);
    zero_pins(model->host);  // else inputs, too, hold garbage
    for (Port& port : model->ports) {
        zero_pins(port.pins);
        port.bytes = port.pins.rdata.bytes;
        port.has_writes = port.pins.wdata.data != nullptr;
        port.memory = port.has_writes;
    }
    model->begin(Conditions{});
    model->reset();
    return model;
}

void chip_delete(void* handle) {
    auto* model = static_cast<Model*>(handle);
    running = model;
#ifdef TILEWRIGHT_TRACE
    if (model->trace) model->trace->close();
#endif
    model->top->final();
    for (auto& part : model->parts) part->final();
    delete model;
    running = nullptr;
}

int chip_trace(void* handle, const char* path) {
#ifdef TILEWRIGHT_TRACE
    auto& model = *static_cast<Model*>(handle);
    model.trace.reset(new VerilatedVcdC);
    model.top->trace(model.trace.get(), 99);
    for (auto& part : model.parts) part->trace(model.trace.get());
    model.trace->open(path);
    return model.trace->isOpen();
#else
    (void)handle, (void)path;
    return 0;
#endif
}

void chip_reset(void* handle) {
    running = static_cast<Model*>(handle);
    running->fault.clear();
    running->reset();
}

void chip_begin(void* handle, const Conditions* conditions) {
    running = static_cast<Model*>(handle);
    running->begin(*conditions);
}

int64_t chip_cycle(void* handle) { return static_cast<Model*>(handle)->cycle; }
int64_t chip_last_beat(void* handle) { return static_cast<Model*>(handle)->moved; }
int chip_errors_met(void* handle) { return static_cast<Model*>(handle)->errors_met; }
int chip_interrupt(void* handle) { return static_cast<Model*>(handle)->top->o_interrupt; }
const char* chip_fault(void* handle) { return static_cast<Model*>(handle)->fault.c_str(); }

void chip_port(void* handle, int index, PortState* state) {
    *state = static_cast<Model*>(handle)->ports[index].state;
}

// Samples every so many cycles of a kernel from now on, and where it begins and ends; 0: none.
void chip_sample(void* handle, int64_t every) {
    auto& model = *static_cast<Model*>(handle);
    model.every = every;
    model.kernel = -1;
    model.samples.clear();
}
// The words of all samples; they stay until `chip_sample`.
const int64_t* chip_samples(void* handle, int64_t* words) {
    const auto& samples = static_cast<Model*>(handle)->samples;
    *words = static_cast<int64_t>(samples.size());
    return samples.data();
}

// Writes a register. Returns the response, or -1 if none came in time; `when` is the cycle in
// which address and data crossed.
int chip_write(void* handle, uint32_t offset, uint32_t value, int64_t* when) {
    auto& model = *static_cast<Model*>(handle);
    running = &model;
    HostPins& host = model.host;
    host.awaddr.set(offset);
    host.wdata.set(value);
    host.wstrb.set(0xf);
    host.awvalid.drive(true);
    host.wvalid.drive(true);
    for (int wait = 0; wait < 1000; ++wait) {
        model.settle();
        const bool address = host.awvalid.high() && host.awready.high();
        const bool data = host.wvalid.high() && host.wready.high();
        const bool answered = host.bvalid.high();
        const auto response = static_cast<int>(host.bresp.value());
        if (address || data) *when = model.cycle;
        model.edge();
        if (address) host.awvalid.drive(false);
        if (data) host.wvalid.drive(false);
        if (answered) return response;
    }
    return -1;
}

// Reads a register. Returns the response, or -1 if none came in time.
int chip_read(void* handle, uint32_t offset, uint32_t* value) {
    auto& model = *static_cast<Model*>(handle);
    running = &model;
    HostPins& host = model.host;
    host.araddr.set(offset);
    host.arvalid.drive(true);
    for (int wait = 0; wait < 1000; ++wait) {
        model.settle();
        const bool address = host.arvalid.high() && host.arready.high();
        const bool answered = host.rvalid.high();
        const auto response = static_cast<int>(host.rresp.value());
        *value = static_cast<uint32_t>(host.rdata.value());
        model.edge();
        if (address) host.arvalid.drive(false);
        if (answered) return response;
    }
    return -1;
}

// Runs until the interrupt (1), a fault (-1), `quiet` cycles without a beat (-2), or the cycle
// `until` or `seconds` of wall time are reached (0).
int chip_run(void* handle, int64_t until, int64_t quiet, double seconds) {
    auto& model = *static_cast<Model*>(handle);
    running = &model;
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    struct Help {
        Model& model;
        ~Help() { model.pace.pause(model.helper); }
    } help{model};
    while (model.cycle < until) {
        if (model.top->o_interrupt) return 1;
        model.pace.step(model.helper, model.context.get());
        model.settle();
        model.edge();
        if (!model.fault.empty()) return -1;
        if (model.cycle - model.moved > quiet) return -2;
        if (model.cycle % 256 == 0 && std::chrono::steady_clock::now() >= end) return 0;
    }
    return 0;
}

}  // extern "C"
