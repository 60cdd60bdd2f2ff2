"""Durable truth: engines, the journal over them, and the read side."""
