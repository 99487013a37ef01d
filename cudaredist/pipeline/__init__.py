"""What each command does, without a terminal: sources, a store and options in, a report out.

Nothing here prints or exits; an item that fails becomes an outcome
with its error, and the others go on.
"""
