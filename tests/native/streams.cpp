// Drives any module whose ports are clocks, resets, valid/ready streams, AXI4 ports to memory and
// plain signals. The generated part, which names the ports, is put in by
// tests/native/stream_model.py, and so is the memory (axi_memory.cpp).
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <vector>
#include <verilated.h>
#include "Vtop.h"

namespace {

template <typename T> inline void put(T& port, const uint32_t* words) {
    if constexpr (sizeof(T) > 4) port = words[0] | static_cast<uint64_t>(words[1]) << 32;
    else port = static_cast<T>(words[0]);
}
template <std::size_t N> inline void put(VlWide<N>& port, const uint32_t* words) {
    std::memcpy(port.data(), words, 4 * N);
}
template <typename T> inline void get(const T& port, uint32_t* words) {
    words[0] = static_cast<uint32_t>(port);
    if constexpr (sizeof(T) > 4) words[1] = static_cast<uint32_t>(port >> 32);
}
template <std::size_t N> inline void get(const VlWide<N>& port, uint32_t* words) {
    std::memcpy(words, port.data(), 4 * N);
}

struct Random {
    uint64_t state;
    uint64_t next() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state >> 32;
    }
    bool below(uint32_t threshold) { return threshold != 0 && next() < threshold; }
};

struct Port {
    uint32_t* words;   // payloads to send, or room for those to come
    int64_t count;     // how many
    int64_t done;      // how many have crossed
    int64_t first;     // cycle of the first and the last handshake
    int64_t last;
    uint32_t stall;    // probability, times 2^32, of not being ready to move in a cycle
    uint32_t offered;  // a payload is offered and must stay
    int32_t index;     // number of the stream in the generated part
};

}  // namespace

//PORTS//

namespace {

//MEMORY//

struct Model {
    std::unique_ptr<VerilatedContext> context{new VerilatedContext};
    std::unique_ptr<Vtop> top;
    std::map<int, std::unique_ptr<Memory>> memories;  // by port
    int64_t cycle = 0;
};

}  // namespace

extern "C" {

void* model_new(uint64_t seed) {
    auto* model = new Model;
    model->context->fatalOnError(false);  // a failed assertion ends the run, not the process
    model->context->randReset(2);  // garbage in every register and memory without a reset
    model->context->randSeed(static_cast<int>(seed % 0x7fffffff) + 1);
    model->top.reset(new Vtop{model->context.get()});
    clear_inputs(*model->top);  // else they, too, hold garbage
    set_resets(*model->top, true);
    for (int edge = 0; edge < 5; ++edge) {
        for (int i = 0; i < clock_count; ++i) set_clock(*model->top, i, edge & 1);
        if (edge == 4) set_resets(*model->top, false);
        model->top->eval();
    }
    return model;
}

void model_delete(void* handle) { delete static_cast<Model*>(handle); }

void model_set(void* handle, int index, const uint32_t* words) {
    set_signal(*static_cast<Model*>(handle)->top, index, words);
    static_cast<Model*>(handle)->top->eval();
}

void model_get(void* handle, int index, uint32_t* words) {
    get_signal(*static_cast<Model*>(handle)->top, index, words);
}

int64_t model_cycle(void* handle) { return static_cast<Model*>(handle)->cycle; }

// A memory at a port from now on; `state` stays with the caller.
void model_attach(void* handle, int index, MemoryState* state) {
    static_cast<Model*>(handle)->memories[index].reset(new Memory{index, state});
}

// Runs some clocks until every given port has moved its payloads; all others are idle, but for
// the memories. Returns 0, -1 after `limit` cycles, -2 after `quiet` cycles without a handshake,
// -3 after a failed assertion, -4 after a violation at a memory, -(100 + i) if output i of those
// given changed an offer it had made.
int64_t model_run(void* handle, Port* inputs, int sources, Port* outputs, int sinks,
                  const int32_t* clocks, int running, const int32_t* ports, int attached,
                  int64_t limit, int64_t quiet, uint64_t seed) {
    auto& model = *static_cast<Model*>(handle);
    auto& top = *model.top;
    Random random{seed * 0x9e3779b97f4a7c15ull | 1};
    uint32_t held[output_count + 1][max_words];
    bool waited[output_count + 1] = {};
    int64_t moved = model.cycle;
    std::vector<Memory*> memories;
    for (int i = 0; i < attached; ++i) memories.push_back(model.memories.at(ports[i]).get());
    idle(top);
    for (int64_t end = model.cycle + limit; model.cycle < end;) {
        bool left = false;
        for (int i = 0; i < sources; ++i) {
            Port& port = inputs[i];
            if (port.done == port.count) port.offered = 0;
            else {
                left = true;
                if (!port.offered && !random.below(port.stall)) port.offered = 1;
            }
            offer(top, port.index, port.offered,
                  port.words + input_words[port.index] * (port.done == port.count ? 0 : port.done));
        }
        for (int i = 0; i < sinks; ++i) {
            Port& port = outputs[i];
            port.offered = port.done < port.count && !random.below(port.stall);
            left |= port.done < port.count;
            accept(top, port.index, port.offered);
        }
        if (!left) {
            top.eval();
            return 0;
        }
        for (Memory* memory : memories) memory->drive(top, model.cycle);
        top.eval();
        for (Memory* memory : memories) {
            if (memory->take(top)) moved = model.cycle;
            if (memory->violated()) return -4;
        }
        for (int i = 0; i < sources; ++i) {
            Port& port = inputs[i];
            if (port.offered && input_ready(top, port.index)) {
                port.offered = 0;
                if (port.done++ == 0) port.first = model.cycle;
                port.last = moved = model.cycle;
            }
        }
        for (int i = 0; i < sinks; ++i) {
            Port& port = outputs[i];
            uint32_t now[max_words] = {};
            const bool valid = output_take(top, port.index, now);
            if (waited[i] && (!valid || std::memcmp(now, held[i], sizeof now))) return -100 - i;
            waited[i] = valid && !port.offered;
            std::memcpy(held[i], now, sizeof now);
            if (valid && port.offered) {
                const int words = output_words[port.index];
                std::memcpy(port.words + words * port.done, now, 4 * words);
                if (port.done++ == 0) port.first = model.cycle;
                port.last = moved = model.cycle;
            }
        }
        for (int i = 0; i < running; ++i) set_clock(top, clocks[i], true);
        top.eval();
        if (model.context->gotError()) return -3;
        for (int i = 0; i < running; ++i) set_clock(top, clocks[i], false);
        ++model.cycle;
        if (model.cycle - moved > quiet) {
            top.eval();
            return -2;
        }
    }
    return -1;
}

}  // extern "C"
