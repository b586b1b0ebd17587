"""The SPARQL parser: returns a tree whose nodes have their offsets in the text."""
