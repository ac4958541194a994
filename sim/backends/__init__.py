"""What computes the answer of an image: RTL in a native model, RTL in cocotb, the emulator."""
