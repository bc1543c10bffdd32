"""One module per migration; each repeats the tables as they were then and imports nothing of hq."""
