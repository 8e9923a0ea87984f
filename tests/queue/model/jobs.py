"""Commands on jobs by name, and reads."""

from __future__ import annotations

from msgspec.structs import replace

from bucketq import errors
from bucketq.queue import commands as c
from bucketq.queue.answers import AwaitArchive, JobInfo, Partial
from bucketq.queue.rows import ENDED, job_number
from tests.queue.model.runs import Runs, Seen

PURGE_STEP = 1_000


class JobCommands(Runs):
    def _cancel(self, command: c.Cancel, seen: Seen) -> JobInfo:
        n = self._find(command.queue, command.job_id)
        self._cancel_runs(n)
        return self._info(n, groups=True)

    def _retry(self, command: c.Retry, seen: Seen) -> JobInfo | AwaitArchive:
        n = self._find(command.queue, command.job_id)
        runs = self.runs_of(n)
        dead = [group for group, run in runs.items() if run.status == "dead"]
        if not dead:
            if all(run.status in ENDED for run in runs.values()):
                raise errors.JobNotFound(command.job_id)
            return self._info(n, groups=True)
        if not all(runs[group].archived for group in dead):
            return AwaitArchive()
        place = self._number()
        for group in dead:
            run = self.runs[n, group]
            self.runs[n, group] = replace(run, status="waiting", attempt=0, place=place, run_us=0, archived=False)
        return self._info(n, groups=True)

    def _purge(self, command: c.Purge, seen: Seen) -> int | Partial | AwaitArchive:
        """Goes by admission, a thousand jobs at a time; an ending that is not yet archived stops it for now."""
        rest = replace(command, until=command.until or self.next_number)
        ahead = [n for n in sorted(self.jobs_of(command.queue)) if rest.after < n < rest.until]
        for n in ahead[:PURGE_STEP]:
            status = self.job_status(n)
            rest = replace(rest, after=n)
            if status != "running" and command.status in (None, status):
                if status in ENDED and self.unarchived(n):
                    rest = replace(rest, after=n - 1)
                    return Partial(rest) if rest.purged > command.purged else AwaitArchive()
                if status in ENDED:
                    self._remove(n)
                else:
                    self._cancel_runs(n)
                rest = replace(rest, purged=rest.purged + 1)
        return Partial(rest) if len(ahead) > PURGE_STEP else rest.purged

    def _get(self, command: c.Get, seen: Seen) -> JobInfo:
        return self._info(self._find(command.queue, command.job_id), groups=True)

    def _listjobs(self, command: c.ListJobs, seen: Seen) -> list[JobInfo]:
        if command.group is not None:
            self._check_group(command.queue, command.group)
        after = (job_number(self.tag, command.after) or 0) if command.after is not None else 0
        found: list[JobInfo] = []
        for n in sorted(self.jobs_of(command.queue)):
            if n <= after:
                continue
            if command.group is None:
                status = self.job_status(n)
            elif (n, command.group) in self.runs:
                status = self.status(self.runs[n, command.group])
            else:
                continue
            if command.status in (None, status):
                found.append(self._info(n, command.group, groups=command.group is None))
        return found[: command.limit]
