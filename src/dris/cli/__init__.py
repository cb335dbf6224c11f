"""The command `dris`: one file a group of verbs."""
