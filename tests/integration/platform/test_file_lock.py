"""The kernel lets go of a lock when its holder is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from podium.platform.file_lock import is_locked, take_file_lock


def test_a_lock_is_free_when_its_process_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    hold = (
        "import sys, time; from pathlib import Path; from podium.platform.file_lock import *; "
        "h = take_file_lock(Path(sys.argv[1])); print('held', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", hold, str(path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        assert is_locked(path)
        child.kill()
        os.close(take_file_lock(path, seconds=60.0))
    assert not is_locked(path)
