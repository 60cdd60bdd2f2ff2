"""opencode's oldest JSON trees: the formats of their messages, their folders, and their migrations."""
