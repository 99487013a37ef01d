"""Update the tables of host compilers and GPUs."""
