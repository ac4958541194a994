"""Number formats and their golden (bit-exact) arithmetic in numpy."""
