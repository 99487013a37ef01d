"""Reports as text, Markdown and what machines read: a report in, lines out, no terminal."""
