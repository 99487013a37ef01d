"""Examine archives and write feature files."""
