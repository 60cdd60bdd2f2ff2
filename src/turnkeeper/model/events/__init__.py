"""The classes of events, one module for each subject. ``model/event.py`` has the union of them all."""
