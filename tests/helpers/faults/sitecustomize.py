"""Faults for the workers of an engine: Python imports this module if it is on its path.

The folder in ELMOKIT_TEST_FAULTS has a file for each fault; a fault that happens once removes it:

    die-N      shard N kills its worker while it writes, once
    orphan-N   shard N kills its worker between its data and its record, once
    poison-N   shard N kills its worker every time
    error-N    shard N fails with an I/O error, once
    slow       every shard takes the seconds in this file longer
    full       the disk is full, for workers with ELMOKIT_TEST_FULL in their environment
"""

import errno
import importlib.machinery
import os
import signal
import sys
import time
from pathlib import Path


def die():
    os.kill(os.getpid(), signal.SIGKILL)


class Faults(importlib.machinery.PathFinder):
    """Changes elmokit.cluster.shard_writer when it is imported."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "elmokit.cluster.shard_writer":
            return None
        spec = super().find_spec(name, path, target)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            change(module)

        spec.loader.exec_module = exec_module
        return spec


def change(module):
    folder = Path(os.environ["ELMOKIT_TEST_FAULTS"])

    def happens(kind, shard):
        try:
            (folder / f"{kind}-{shard}").unlink()
        except FileNotFoundError:
            return False
        return True

    write_file, create = module.ShardWriter._write_file, module.Record.create

    def faulty_write_file(self, path, part, rows):
        found = write_file(self, path, part, rows)
        if (folder / "slow").exists():
            time.sleep(float((folder / "slow").read_text()))
        if (folder / f"poison-{part.number}").exists() or happens("die", part.number):
            die()
        if happens("error", part.number):
            raise OSError(errno.EIO, "injected")
        if (folder / "full").exists() and os.environ.get("ELMOKIT_TEST_FULL"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return found

    def faulty_create(self, store):
        if happens("orphan", self.shard):
            die()
        return create(self, store)

    module.ShardWriter._write_file = faulty_write_file
    module.Record.create = faulty_create


if os.environ.get("ELMOKIT_TEST_FAULTS"):
    sys.meta_path.insert(0, Faults)
