"""Mirrors of manifests and archives: sync, verify and prune."""
