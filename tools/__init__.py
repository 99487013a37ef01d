"""Programs that `make` and maintainers run; not shipped with the package."""
