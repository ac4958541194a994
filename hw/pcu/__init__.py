"""The pattern compute unit: a grid with its ports, tail and SIMD mode."""
