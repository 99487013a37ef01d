"""audit --source: uses of CUDA's API in source code, compared with the API of releases."""
