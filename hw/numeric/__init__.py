"""Number formats and the circuits that compute with them."""
