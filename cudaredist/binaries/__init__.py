"""What one file is: its machine, its libraries, its device code, from one pass over its bytes.

No file is too broken: what cannot be read is left out and noted.
"""
