"""Exported symbols by release: the table of one library, and questions to it."""
