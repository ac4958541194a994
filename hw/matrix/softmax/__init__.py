"""Parts that a matrix unit needs between the two products of attention."""
