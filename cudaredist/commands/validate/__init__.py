"""validate: check files against their schemas and invariants."""
