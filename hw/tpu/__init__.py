"""A matrix unit with an addressed unified buffer and a stream of instructions."""
