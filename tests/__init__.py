"""The tests, in rooms of the same names as those of the package."""
