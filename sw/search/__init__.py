"""Search for the plan of a product: what is tried, and in which order."""
