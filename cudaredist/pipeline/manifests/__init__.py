"""Find, download and list manifests."""
