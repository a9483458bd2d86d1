"""Where the jobs of a grid run: processes of this machine, Slurm, a Ray cluster."""

from d2cp.executors.jobs import EXECUTORS, Away, Job, run_jobs

__all__ = ["EXECUTORS", "Away", "Job", "run_jobs"]
