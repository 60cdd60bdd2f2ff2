"""Event streams: what happens, as server-sent events, made once and sent to everybody who listens."""
