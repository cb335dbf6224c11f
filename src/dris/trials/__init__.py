"""Trials in the twin laboratory, from rendered images to torques: the paper's table, without the robot."""
