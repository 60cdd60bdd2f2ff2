"""The chat: prompts typed line by line on a terminal, and the session that answers them."""
