"""Pattern compute unit (PCU): packet filters and a matrix unit."""
