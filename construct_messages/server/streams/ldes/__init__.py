"""A stream as a Linked Data Event Stream: its pages, and how they are served."""
