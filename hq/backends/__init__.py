"""Storage: durable rows and an append-only journal, and no rules. port.py is the contract."""
