# Only the program, which the host has.
