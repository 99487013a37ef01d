"""Tables derived from NVIDIA's files, and the answers they give."""
