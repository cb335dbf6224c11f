"""`python -m dris` is `dris`."""

from dris.cli.main import main

if __name__ == "__main__":
    main()
