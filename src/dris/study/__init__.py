"""Studies: many runs, scored alike, collected as files, and the pages made from those files."""
