"""Create verified CUDA package sets from NVIDIA's redistributable manifests."""

__version__ = "0.2.0"
