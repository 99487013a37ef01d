"""List, compare and download manifests."""
