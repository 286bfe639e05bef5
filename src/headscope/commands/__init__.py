"""The commands of the `headscope` program, one file each."""
