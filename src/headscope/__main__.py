"""`python -m headscope` is the same program as `headscope`."""

from headscope.cli import main

if __name__ == "__main__":  # the process that traces texts imports this module too
    main()
