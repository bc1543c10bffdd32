"""What a job of the pipeline is told, in one sentence each."""

from __future__ import annotations

from hq.errors import CallerError, HQError


class LakeInvalid(CallerError):
    """What is in this directory is no lake."""

    code = "lake_invalid"


class LakeEmpty(CallerError):
    """The lake has nothing to read yet: run hq pipeline archive, then hq pipeline build."""

    code = "lake_empty"


class LakeTooNew(CallerError):
    """The lake was written by a newer hq."""

    code = "lake_too_new"


class LakeBusy(CallerError):
    """Another job writes to this lake; it is to be run again when that has ended."""

    code = "lake_busy"


class AnotherStore(CallerError):
    """The lake is of another store, or of this one before it was restored: name another directory."""

    code = "another_store"


class ManifestCorrupt(HQError):
    """The lake's manifest cannot be read."""

    code = "manifest_corrupt"


class EventsLost(HQError):
    """The journal no longer has what the lake lacks."""

    code = "events_lost"


class RowsDiffer(HQError):
    """What was written is not what the journal has; nothing was published."""

    code = "rows_differ"


class JobStopped(HQError):
    """The job could not go on."""

    code = "job_stopped"
