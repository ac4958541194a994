"""The switches that join units, for vectors and for tokens."""
