"""Stage graph of a kernel: its kinds of stage, and their lowering to units."""
