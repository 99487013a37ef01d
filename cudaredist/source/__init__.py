"""Where bytes come from: an HTTP(S) index, a folder, several of them in order.

A source knows nothing about the meaning of a manifest: it lists names and delivers bytes, within
limits of size and time. `protocol` is the interface of every source, `folder`, `http` and
`wheel_index` are the three kinds, `index` reads a listing page, `pip` asks a package index, and
`chain` tries several sources in order. Only `http` and the user's own pip use the network.
"""
