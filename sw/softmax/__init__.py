"""Softmax over blocks of keys between two products: recognised in the tile IR."""
