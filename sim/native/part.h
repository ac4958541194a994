// Models of the parts of a design, and the wires between their ports. What names them is put in by
// sim/native/chip_ports.py.
#include <cstring>
#include <memory>
#include <vector>
#include <verilated.h>
//MODELS//

namespace {

// A part of the chip that is a model of its own, and the wires to the rest.
struct Part {
    struct Wire {
        const void* from;
        void* to;
        std::size_t bytes;
        bool move() const {
            switch (bytes) {  // most wires are narrow: no calls for them
            case 1: return copy<uint8_t>();
            case 2: return copy<uint16_t>();
            case 4: return copy<uint32_t>();
            case 8: return copy<uint64_t>();
            }
            if (!std::memcmp(from, to, bytes)) return false;
            std::memcpy(to, from, bytes);
            return true;
        }
        template <typename T> bool copy() const {
            const T value = *static_cast<const T*>(from);
            T& target = *static_cast<T*>(to);
            if (target == value) return false;
            target = value;
            return true;
        }
    };
    std::vector<Wire> inputs, outputs;
    // Of a unit with counters: the number that its output shows, that output, and whether it runs.
    uint8_t* number = nullptr;
    const uint64_t* counter = nullptr;
    const uint8_t* runs = nullptr;

    virtual ~Part() = default;
    virtual void clock(bool level) = 0;
    virtual void eval() = 0;
    virtual void final() = 0;
#ifdef TILEWRIGHT_TRACE
    virtual void trace(VerilatedVcdC* file) = 0;
#endif

    template <typename T, typename U> void input(const T& outer, U& inner) {
        static_assert(sizeof(T) == sizeof(U));
        inputs.push_back({&outer, &inner, sizeof(T)});
    }
    template <typename T, typename U> void output(const T& inner, U& outer) {
        static_assert(sizeof(T) == sizeof(U));
        outputs.push_back({&inner, &outer, sizeof(T)});
    }
    void counters(uint8_t& select, const uint64_t& value, const uint8_t& run) {
        number = &select;
        counter = &value;
        runs = &run;
    }
    static bool move(const std::vector<Wire>& wires) {
        bool changed = false;
        for (const Wire& wire : wires) changed |= wire.move();
        return changed;
    }
};

template <typename T> struct PartOf : Part {
    T model;
    PartOf(VerilatedContext* context, const char* name) : model{context, name} {}
    void clock(bool level) override { model.clk = level; }
    void eval() override { model.eval(); }
    void final() override { model.final(); }
#ifdef TILEWRIGHT_TRACE
    void trace(VerilatedVcdC* file) override { model.trace(file, 99); }
#endif
};

//WIRES//

}  // namespace
