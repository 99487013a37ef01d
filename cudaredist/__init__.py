"""Create verified CUDA package sets from NVIDIA's redistributable manifests."""

__version__ = "0.1.0"
