"""versions: list local and published releases."""
