"""Software: the tile language, its compiler and the kernels written in it."""
