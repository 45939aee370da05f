"""SQL over topics: statements of `ottla sql`, their rows while they come, and a button that stops them."""

from __future__ import annotations

import json
import time
from typing import Any

from ottla.console.app import Data, Refused, Visit, change, page
from ottla.console.pages.fields import needed
from ottla.console.sql import Job, Jobs, is_installed

CELL_CHARACTERS = 300


def _jobs(visit: Visit) -> Jobs:
    if not visit.settings.runs_sql:
        raise Refused(404, "this console runs no SQL: start it with --sql")
    if visit.settings.masking:
        raise Refused(403, "SQL shows records as they are, and this console masks fields: use one or the other")
    if not visit.user.is_editor:
        raise Refused(403, f"{visit.user.name} may only look: SQL is for those who may change things")
    return visit.console.jobs


@page("/sql", "sql.html")
async def sql(visit: Visit) -> Data:
    """A form for statements, and what ran lately."""
    jobs = _jobs(visit)
    return {
        "title": "SQL",
        "is_installed": is_installed(),
        "text": visit.query.get("text", ""),
        "jobs": [_summary(each) for each in jobs.all() if each.cluster == visit.view.name],
    }


def _summary(job: Job) -> Data:
    return {
        "id": job.id,
        "text": job.text,
        "by": job.user,
        "began": int(job.began_s * 1000),
        "seconds": (job.ended_s or time.time()) - job.began_s,
        "rows": len(job.rows) + job.skipped,
        "state": "runs" if job.is_running else "stopped" if job.is_stopped else "done" if job.code == 0 else "failed",
    }


@change("/sql", permission="sql")
async def start(visit: Visit) -> tuple[str, str]:
    """Run statements in a process of their own."""
    jobs = _jobs(visit)
    text = needed(visit.form, "text", "the statement")
    properties = dict(visit.settings.properties.get(visit.view.name, {}))
    properties["bootstrap.servers"] = visit.view.address
    job = jobs.start(text, visit.user.name, visit.view.name, properties)
    return f"/sql/{job.id}", "The statement runs."


def _job(visit: Visit) -> Job:
    job = _jobs(visit).get(visit.segments["id"])
    if job is None or job.cluster != visit.view.name:
        raise Refused(404, "this statement is not kept any more: run it again")
    return job


@page("/sql/{id}", "sql_job.html")
async def result(visit: Visit) -> Data:
    """The rows of a statement, as far as they have come."""
    job = _job(visit)
    return {
        "title": "SQL",
        **_summary(job),
        "columns": job.columns,
        "cells": [[_cell(row.get(name)) for name in job.columns] for row in job.rows],
        "skipped": job.skipped,
        "messages": list(job.messages),
    }


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= CELL_CHARACTERS else text[:CELL_CHARACTERS] + "…"


@change("/sql/{id}/stop", permission="sql")
async def stop(visit: Visit) -> tuple[str, str]:
    """End a statement that runs."""
    job = _job(visit)
    await _jobs(visit).stop(job)
    return f"/sql/{job.id}", "The statement was stopped."
