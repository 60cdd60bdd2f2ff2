"""Durable state: storage engines, the journal that writes to them, and the queries."""
