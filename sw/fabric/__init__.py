"""The fabric: placement, routing, merge orders, routing trees, nets of a program."""
