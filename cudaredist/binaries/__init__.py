"""Facts of single files: the machine, libraries, symbols and device code.

The bytes of a file are searched once from beginning to end. Then its tables are read at their
positions. If a file is damaged, its unreadable facts are omitted, and a note reports them.
"""
