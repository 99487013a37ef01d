"""query: ask the index of all facts in SQL."""
