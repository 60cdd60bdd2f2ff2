"""Words: the frozen values everything else is said in."""
