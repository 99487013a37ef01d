"""bump: add new releases, update their data, and write a commit message.

`bump_plan` selects the releases, and `bump_data` runs the steps of the other commands for them.
`bumped_sets` reports the package sets.
"""
