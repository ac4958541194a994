"""Layouts of the words that software packs and hardware takes apart."""
