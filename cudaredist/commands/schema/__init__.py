"""schema: print the JSON Schemas of files and reports."""
