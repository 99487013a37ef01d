"""Models of our own files, and the JSON Schemas made from them.

Unlike NVIDIA's manifests these are strict: an unknown key is an error. A field's description is
its documentation and becomes part of the schema. To add a kind of file, add a model and a line in
`FILE_KINDS`; the tests that walk it tell what else is missing.
"""
