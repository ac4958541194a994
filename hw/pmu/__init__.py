"""The pattern memory unit: banks, stream engines, slots."""
