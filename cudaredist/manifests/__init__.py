"""NVIDIA's manifests: bytes in, a frozen `Manifest` out.

Four shapes are read: *early* (CUDA before 11.4.2: package, version, platform, path), *flat*
(platform, archive), *nested* (platform, variant, archive) and *mixed* (both in one platform).
Unknown platforms, variants and keys are kept and warned about, since new ones appear every second
year; whatever makes an archive impossible to identify or to place refuses the file, with every
problem found. Nothing is guessed: a hash or size that is not there is None.

Nothing here touches the network or `data/`.
"""
