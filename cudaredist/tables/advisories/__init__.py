"""Known vulnerabilities: reader of NVIDIA's bulletins, and the states of packages and drivers."""
