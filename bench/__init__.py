"""Speed, measured side by side: each figure is a ratio to a floor taken in the same run on the same machine."""
