// The class `Vtop` that cocotb's program drives, made of the models of a design's parts. What
// follows this text is that program.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include "part.h"

// Assertions of the design end the simulation.
void vl_fatal(const char* file, int line, const char*, const char* text) VL_MT_UNSAFE {
    std::fprintf(stderr, "%s, line %d: %s\n", file, line, text);
    Verilated::runFlushCallbacks();
    std::abort();
}
void vl_stop(const char* file, int line, const char* scope) VL_MT_UNSAFE {
    vl_fatal(file, line, scope, "assertion failed");
}

class Vtop {
public:
    explicit Vtop(const char* name) : rest{Verilated::threadContextp(), name} {
        bind_parts(rest, Verilated::threadContextp(), parts);
    }

    // cocotb has put the inputs, the clock among them, into the rest of the design.
    void eval_step() {
        const bool level = rest.clk;
        const bool rises = level && !clock;
        rest.eval();
        if (rises) {  // every model takes what has settled
            for (auto& part : parts) {
                part->clock(true);
                part->eval();
            }
            for (auto& part : parts) Part::move(part->outputs);
            rest.eval();
        }
        // Ports of parts come from registers, mostly, so one round settles them.
        const bool falls = !level && clock;
        clock = level;
        for (int round = 0; round < 64; ++round) {
            bool changed = false;
            for (auto& part : parts) {
                const bool moved = Part::move(part->inputs);
                if (!moved && (round || !(falls || first))) continue;
                part->clock(level);
                part->eval();
                changed |= Part::move(part->outputs);
            }
            first = false;
            if (!changed) return;
            rest.eval();
        }
        vl_fatal(__FILE__, __LINE__, "", "ports of parts do not settle");
    }

    void eval_end_step() {}
    bool eventsPending() { return false; }
    std::uint64_t nextTimeSlot() { return 0; }
    void final() {
        rest.final();
        for (auto& part : parts) part->final();
    }
#ifdef TILEWRIGHT_TRACE
    void trace(VerilatedVcdC* file, int levels) {
        rest.trace(file, levels);
        for (auto& part : parts) part->trace(file);
    }
#endif

private:
    Rest rest;
    std::vector<std::unique_ptr<Part>> parts;
    bool clock = false;
    bool first = true;
};
