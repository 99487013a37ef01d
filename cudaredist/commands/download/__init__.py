"""download-manifests: find and fetch manifests."""
