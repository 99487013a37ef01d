"""Create, verify and remove toolkit roots."""
