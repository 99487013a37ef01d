"""From NVIDIA's manifests to verified, explained, per-platform CUDA package sets."""

__version__ = "0.1.0"
