"""which: find the packages that provide a file, a library or a symbol."""
