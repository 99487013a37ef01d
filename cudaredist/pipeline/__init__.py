"""The work of each command, independent of the terminal.

A command passes sources, a store and options, and gets a report. Nothing here prints or exits. An
item that fails becomes an outcome with its error, and the other items continue.
"""
