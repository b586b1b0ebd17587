"""Resources of streams as pages for people: what their descriptions and messages say, as HTML."""
