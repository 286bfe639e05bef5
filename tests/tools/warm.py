"""A process that has imported what is heavy, and is forked by whoever needs a process of its own.

Importing torch and transformers takes seconds; a fork of a process that has them takes none. A new
process has no thread and no open file of the tests, unlike a fork of theirs.
"""

import multiprocessing

forking = multiprocessing.get_context("forkserver")
forking.set_forkserver_preload(["tests.engine.killed_runs", "tests.references.explorer_models"])
