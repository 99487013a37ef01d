"""explain: show facts with their sources."""
