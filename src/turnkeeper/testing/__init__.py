"""The public test kit: what authors of engines check their work with. Only the contract needs pytest."""
