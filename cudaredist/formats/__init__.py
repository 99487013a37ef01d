"""Models of cudaredist's files, and the sources of their JSON Schemas.

Unlike NVIDIA's manifests, these models are strict: an unknown key is an error. A field's
description is its documentation and becomes part of the schema. To add a kind of file, add a model
and a line in `FILE_KINDS`. Tests report anything else that is missing.
"""
