"""Shared options, the session of a command, and the console."""
