"""Loops over points: as launches, and as longer loops over rows, columns or terms."""
