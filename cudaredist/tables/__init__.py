"""Tables derived from NVIDIA's files, and explanations based on them."""
