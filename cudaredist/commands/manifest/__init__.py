"""manifest: write manifests of products without them."""
