"""Prologue: element math on the operands of a product, in the image of the product."""
