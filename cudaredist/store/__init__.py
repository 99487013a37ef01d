"""The data folder and the cache.

Only these modules know their layout.

Every file is written under a temporary name in its folder, flushed to disk and renamed. A reader,
or a run after a crash, sees the old bytes or the new ones, but never a mixture. A file is not
touched if its bytes would stay the same. The callers decide the contents.
"""
