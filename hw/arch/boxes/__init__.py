"""Programs of an AGCU's command issuers."""
