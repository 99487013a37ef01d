"""Sources of manifests and archives: HTTP(S) servers, folders and package indexes.

A source lists names and delivers bytes, within limits of size and time. It does not interpret
manifests. `protocol` is the interface of every source. `folder`, `http` and `wheel_source` are the
three kinds, and `chain` tries several sources in order. `index` reads the listing page of a folder,
`index_page` the page of a package index. `pip_config` and `credentials` read the user's
configuration. Only `http_client` uses the network.
"""
