"""export: write package sets in the formats of other tools."""
