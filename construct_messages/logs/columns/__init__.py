"""Messages and solutions in files of Parquet, Arrow and CSV. `logs/columns/` makes the rows."""
