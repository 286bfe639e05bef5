"""`python -m headscope` is the same program as `headscope`."""

from headscope.cli import main

main()
