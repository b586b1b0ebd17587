"""The version of the package: any room reads it, and none imports the package's top for it."""

__version__ = "0.1.0"
