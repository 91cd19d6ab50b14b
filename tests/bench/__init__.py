"""How fast panto is, by one command: `python -m tests.bench`.

Every figure comes with a goal and, where it makes sense, with the machine's own yardstick measured in the same minute,
so that figures from two machines can be compared as ratios. Nothing here is a test: no check depends on speed.
"""
