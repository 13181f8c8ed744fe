# Writes what happens in a run as JSON, one event a line, to the file descriptor that
# BURROW_EVENTS_FD names. Without it, does nothing. internal/ansiblex/events.go reads it.
#
# Works with ansible-core 2.14 and later. A reader that has gone away ends the events,
# never the run. Results of tasks with no_log arrive here already censored by Ansible.

from __future__ import annotations

import datetime
import json
import os
import time

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
    name: burrow
    type: notification
    short_description: one JSON line an event, for burrow
    description:
      - Plays, tasks, results and the recap, written to an inherited file descriptor.
"""

# Longest text taken from a result; the log has the rest.
MAX_MESSAGE = 4000

# Most hosts, and most groups, that are named of an inventory.
MAX_NAMES = 100

# Fields of a failed result, in the order in which they tell what went wrong.
MESSAGE_FIELDS = ("msg", "reason", "exception", "module_stderr", "stderr", "module_stdout", "stdout")


def _text(value, limit=MAX_MESSAGE):
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    text = text.strip()
    return text if len(text) <= limit else text[: limit // 2] + " […] " + text[-limit // 2:]


def _message(result):
    """What went wrong, of a result that Ansible has already censored."""
    if "censored" in result:
        return "(hidden: the task has no_log)"
    parts = []
    for item in result.get("results", ()):
        if isinstance(item, dict) and (item.get("failed") or item.get("unreachable")):
            label = item.get("_ansible_item_label", item.get("item", ""))
            parts.append("item %s: %s" % (_text(label, 200), _message(item)))
    if parts:
        return _text("\n".join(parts))
    for field in MESSAGE_FIELDS:
        value = result.get(field)
        if value and value != "non-zero return code" and not str(value).startswith("MODULE FAILURE"):
            parts.append(_text(value))
        if len(parts) == 2:
            break
    if not parts and result.get("rc"):
        parts.append("exit status %s" % result["rc"])
    return _text("\n".join(parts))


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "burrow"
    CALLBACK_NEEDS_ENABLED = False

    def __init__(self):
        super().__init__()
        self._out = None
        self._play = ""
        self._inventory = None
        self._started = {}
        fd = os.environ.get("BURROW_EVENTS_FD", "")
        if not fd.isdigit():
            self.disabled = True
            return
        try:
            os.set_inheritable(int(fd), False)
            self._out = os.fdopen(int(fd), "w", encoding="utf-8", errors="backslashreplace", buffering=1)
        except OSError:
            self.disabled = True

    def _event(self, kind, **fields):
        if self._out is None:
            return
        fields.update(event=kind, time=datetime.datetime.now(datetime.timezone.utc).isoformat())
        try:
            self._out.write(json.dumps(fields, default=str) + "\n")
        except (OSError, ValueError):
            self._out = None

    def _result(self, result, status, message=""):
        host, task = result._host.get_name(), result._task
        started = self._started.pop((host, task._uuid), None)
        self._event(
            "result", play=self._play, task=task.get_name(), host=host, status=status, message=message,
            seconds=round(time.monotonic() - started, 3) if started is not None else 0,
        )

    # Plays and tasks.

    def v2_playbook_on_play_start(self, play):
        self._play = play.get_name().strip()
        self._inventory = getattr(play.get_variable_manager(), "_inventory", None)
        self._started.clear()
        self._event("play", play=self._play)

    def v2_playbook_on_no_hosts_matched(self):
        # All of the inventory, whatever the run is limited to.
        names = {kind: sorted(getattr(self._inventory, kind, ()))[:MAX_NAMES] for kind in ("hosts", "groups")}
        self._event("no_hosts", play=self._play, **names)

    def v2_playbook_on_vars_prompt(self, varname, private=True, prompt=None, encrypt=None, confirm=False,
                                   salt_size=None, salt=None, default=None, unsafe=None):
        if default is None:
            self._event("prompt", message=varname)

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._event("task", play=self._play, task=task.get_name())

    def v2_playbook_on_handler_task_start(self, task):
        self._event("task", play=self._play, task=task.get_name())

    def v2_playbook_on_cleanup_task_start(self, task):
        self._event("task", play=self._play, task=task.get_name())

    def v2_runner_on_start(self, host, task):
        self._started[(host.get_name(), task._uuid)] = time.monotonic()

    # Results.

    def v2_runner_on_ok(self, result):
        self._result(result, "changed" if result._result.get("changed") else "ok")

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._result(result, "ignored" if ignore_errors else "failed", _message(result._result))

    def v2_runner_on_unreachable(self, result):
        self._result(result, "unreachable", _message(result._result))

    def v2_runner_on_skipped(self, result):
        self._result(result, "skipped")

    def v2_playbook_on_stats(self, stats):
        recap = {}
        for host in sorted(stats.processed):
            s = stats.summarize(host)
            recap[host] = {
                "ok": s["ok"], "changed": s["changed"], "failed": s["failures"], "unreachable": s["unreachable"],
                "skipped": s["skipped"], "rescued": s["rescued"], "ignored": s["ignored"],
            }
        self._event("recap", recap=recap)
