"""Estimates of plans and parts, and the order in which a search tries them."""
