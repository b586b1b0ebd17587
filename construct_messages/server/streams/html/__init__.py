"""Resources of streams as pages for people: their descriptions and messages as HTML."""
