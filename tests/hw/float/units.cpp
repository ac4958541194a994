// Runs the bench of tests/hw/float/units.py over arrays, one element a cycle.
#include <cstdint>
#include <verilated.h>
#include "Vtop.h"

extern "C" {

// Runs one group of units. `outputs` takes, for every cycle, the group's words just before its
// clock rises.
void units_run(int group, int64_t cycles, uint32_t mode, const uint32_t* a, const uint32_t* w,
               const uint32_t* p, uint32_t* outputs) {
    VerilatedContext context;
    Vtop top(&context);
    top.mode = mode;
    for (int64_t cycle = 0; cycle < cycles; ++cycle) {
        top.i_a = a[cycle];
        top.i_w = w[cycle];
        top.i_p = p[cycle];
        CLOCKS_LOW
        top.eval();
        // The other groups' registers stand still, and so does everything behind them.
        switch (group) { TAKE_OUTPUTS }
        top.eval();
    }
    top.final();
}

}
