"""What Lua may ask of Python: one file for each namespace, with ops (a task waits) and messages (nobody waits)."""
