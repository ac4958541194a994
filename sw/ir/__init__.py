"""The tile IR: nodes, text form, verifier."""
