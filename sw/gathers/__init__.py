"""Gathers of rows: recognition, and the pipeline that one image is."""
