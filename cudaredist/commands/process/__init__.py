"""process-manifests: inspect archives and write feature files.

`feature_run` processes the archives, and `feature_file` collects the file of one release. `dask`
inspects archives on the workers of a cluster, and `dask_client` accepts only bytes from them.
"""
