"""History from and to other tools: import, export, and the shapes they use."""
