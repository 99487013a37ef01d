"""Tables of APIs: the names in the headers of packages, read with libclang."""
