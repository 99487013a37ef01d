"""The data folder and the cache: the only module that knows where things lie in them.

Every file is written to a temporary name in its folder, flushed to disk and renamed, so that a
reader, or a run after a crash, sees the old bytes or the new ones and nothing between. A file whose
bytes would not change is not touched. Nothing here decides what to write.
"""
