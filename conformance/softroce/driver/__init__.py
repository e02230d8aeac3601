"""The softroce tool, one idea per module; Python's standard library only."""
