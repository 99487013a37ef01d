"""runfile: record the deprecated installers."""
