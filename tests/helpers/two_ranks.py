"""Two processes that share their work, as a user would start them."""

import os
import subprocess
import sys

LAUNCHERS = {
    "torchrun": ["torch.distributed.run", "--standalone", "--nproc_per_node=2"],
    # `accelerate launch --cpu` starts one process whatever number it is given; this starts two.
    "accelerate": [
        *("accelerate.commands.launch", "--multi_gpu", "--num_processes=2", "--num_machines=1"),
        *("--mixed_precision=no", "--dynamo_backend=no", "--main_process_port=0"),
    ],
}


def two_ranks(launcher: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Runs a script, or a module after `-m`; one thread each."""
    command = [sys.executable, "-m", *LAUNCHERS[launcher], *map(str, words)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done
