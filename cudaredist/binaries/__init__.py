"""Facts of single files: the machine, libraries, symbols and device code.

The bytes of a file are read at any position: the tables, and then all blocks in search of names and
device code. If a file is damaged, its unreadable facts are omitted, and a note reports them.
"""
