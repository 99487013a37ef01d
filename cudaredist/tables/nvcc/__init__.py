"""Host compilers accepted by each nvcc, from its `crt/host_config.h`."""
