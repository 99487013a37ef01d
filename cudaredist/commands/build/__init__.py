"""build: make package sets from data files."""
