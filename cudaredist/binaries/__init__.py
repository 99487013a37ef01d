"""Facts of single files, read in one pass.

The facts are the machine, libraries and device code. If a file is damaged, its unreadable facts are
omitted, and a note reports them.
"""
