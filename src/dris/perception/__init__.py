"""Perception: from two cameras' images to a ball's state. Needs neither torch nor a simulator."""
