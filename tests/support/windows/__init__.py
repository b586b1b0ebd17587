"""Windows under test: random histories of streams, and an oracle of what queries over them give."""
