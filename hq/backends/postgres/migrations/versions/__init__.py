"""One file per change of the schema, in order."""
