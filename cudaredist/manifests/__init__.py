"""Reader of NVIDIA's manifests, from bytes to a frozen `Manifest`.

Four shapes are supported: *early* (CUDA before 11.4.2: package, version, platform, path), *flat*
(platform, archive), *nested* (platform, variant, archive) and *mixed* (both in one platform).
New platforms, variants and keys appear every second year, so unknown ones are kept with a warning.
If an archive cannot be identified or located, the file is refused, and all problems are reported.
Nothing is guessed: a missing hash or size is None.

This package does not access the network or `data/`.
"""
