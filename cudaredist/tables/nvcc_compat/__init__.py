"""The host compilers that each nvcc accepts, from its `crt/host_config.h`."""
