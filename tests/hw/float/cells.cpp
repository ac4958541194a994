// Runs the bench of tests/hw/float/bench.py over arrays, one element a cycle.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <verilated.h>
#include "Vtop.h"

extern "C" {

// `outputs` takes, for every cycle, the words `o_0` ... of the top just before its clock edge.
void bench_run(int64_t cycles, int mode, const uint16_t* a, const uint16_t* w, const uint32_t* p,
               const uint8_t* swap, const uint8_t* load, uint32_t* outputs) {
    VerilatedContext context;
    Vtop top(&context);
    top.mode = mode;
    for (int64_t cycle = 0; cycle < cycles; ++cycle) {
        top.i_a = a[cycle];
        top.i_w = w[cycle];
        top.i_p = p[cycle];
        top.i_swap = swap[cycle];
        top.i_next_swap = cycle + 1 < cycles && swap[cycle + 1];
        top.i_w_load = load[cycle];
        top.clk = 0;
        top.eval();
        TAKE_OUTPUTS
        top.clk = 1;
        top.eval();
    }
    top.final();
}

// The C library's fused multiply-add, on bits.
void fused(int64_t count, const uint32_t* p, const uint16_t* a, const uint16_t* w, uint32_t* out) {
    for (int64_t i = 0; i < count; ++i) {
        uint32_t bits[3] = {p[i], uint32_t(a[i]) << 16, uint32_t(w[i]) << 16};
        float values[3];
        std::memcpy(values, bits, sizeof values);
        const float sum = std::fma(values[1], values[2], values[0]);
        std::memcpy(out + i, &sum, sizeof sum);
    }
}

}
