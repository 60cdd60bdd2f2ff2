"""Event streams: notifications as server-sent events, encoded once for all subscribers."""
