"""Sources of bytes: an HTTP(S) server, a folder, package indexes, and several of them in order.

A source knows nothing about the meaning of a manifest: it lists names and delivers bytes, within
limits of size and time. `protocol` is the interface of every source, `folder`, `http` and
`wheel_source` are the three kinds, `index` reads a listing page and `index_page` a package index's,
`pip_config` and `credentials` are the user's configuration, and `chain` tries several sources in
order. Only `http_client` uses the network.
"""
