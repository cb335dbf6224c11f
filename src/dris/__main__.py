"""`python -m dris` is `dris`."""

from dris.cli.main import main

main()
