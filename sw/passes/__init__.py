"""The lists of passes, their driver and state; recognition and plan of a product."""
