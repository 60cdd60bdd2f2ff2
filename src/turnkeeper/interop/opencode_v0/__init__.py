"""opencode's JSON trees of its first generations: the shapes of their messages, their folders, and their migrations."""
