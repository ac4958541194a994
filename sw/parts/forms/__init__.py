"""Other forms of a program with the same results, tried where the first has no division."""
