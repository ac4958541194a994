"""Phase barriers of a TMA unit: a bank of them in a memory, with waits by parity."""
