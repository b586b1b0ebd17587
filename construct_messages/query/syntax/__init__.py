"""The one reader of SPARQL text: a tree whose nodes know their place in the text."""
