"""drop: remove releases from the data."""
