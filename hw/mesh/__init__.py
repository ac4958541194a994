"""Mesh network of vectors and tokens: switches of eager forks and ordered merges."""
