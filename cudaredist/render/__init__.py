"""Reports as text, Markdown and machine-readable formats."""
