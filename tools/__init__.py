"""Programs for `make` and maintainers, not part of the package."""
