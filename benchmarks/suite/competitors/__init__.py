"""What people do today to get a CONSTRUCT's results one by one, and what this package does.

Each is a program of its own that does the whole job and prints groups: N-Triples lines, and `# group` after each, or
this package's log. What its user writes by hand for a query is made before it starts (`construct.py`) and is not
measured; what it can and cannot know stands on top of its module. Endpoint competitors are asked through the relay.

The table of them is in `table.py`. Nothing is imported here, for the programs in Python would wait for it.
"""
