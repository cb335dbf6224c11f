"""The core: domain, task, environment, random numbers and the check of a task. It knows no robot."""
