"""audit: the CUDA libraries, releases and GPUs that a program needs.

`programs` and `environments` do the work.
"""
