#!/usr/bin/env python3
"""Breaks the kernel on purpose, one line at a time, and sees whether the random scenes notice.

Run it in a clone of its own: it changes sources and puts them back. Prints a line per mutant; exits with 1 if one of
those that must be caught was not. `docs/simulation.md` has the table.
"""
import os
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
KERNEL, CALLS = "crates/kernel/src/", "crates/unix/src/calls/"
SCHEDULE, RING = KERNEL + "schedule/mod.rs", KERNEL + "schedule/ring.rs"
PIPE, FUTEX = KERNEL + "pipe/ends.rs", CALLS + "futexes.rs"
TERMINAL = "crates/unix/src/files/terminal/mod.rs"

# What is broken, where, the line, and what it becomes.
MUTANTS = [
    ("a waiting queue loses its last waiter", KERNEL + "schedule/waiting.rs",
     "waiters.drain(..).rev() {", "waiters.drain(..).rev().skip(1) {"),
    ("a removed thread stays the predecessor of the next", RING,
     "        self.set_before(links.after, links.before);\n        self.any", "        self.any"),
    ("the code's link to a removed thread stays", RING,
     "        self.changed = [Some((links.before, Some(links.after))), None];", "        self.changed = [None; 2];"),
    ("a linked thread has no link of its own", RING,
     "[Some((before, Some(new))), Some((new, Some(after)))]", "[Some((before, Some(new))), None]"),
    ("who leaves does not link its successor", SCHEDULE,
     "            current.tte().link_next(successor.tte());\n", ""),
    ("alarms ring 50 microseconds early", KERNEL + "schedule/alarm.rs",
     "(first.key().0 <= now)", "(first.key().0 <= now.saturating_add(Nanos(50_000)))"),
    ("a new alarm does not arm the timer", SCHEDULE,
     "        }\n        self.arm();\n        id", "        }\n        id"),
    ("the timer is not armed again", SCHEDULE,
     "        self.allow_preemption();\n        self.arm();\n        if self.machine",
     "        self.allow_preemption();\n        if self.machine"),
    ("the machine may pre-empt past an alarm", SCHEDULE,
     "            Some(at) => at.saturating_sub(Nanos(QUANTUM_MOST_NS)),", "            Some(_) => Nanos(u64::MAX),"),
    ("a futex wake does not unblock", FUTEX,
     "        unix.scheduler.unblock(&waiter.thread);\n", ""),
    ("a moved futex waiter keeps its old key", FUTEX, "        waiter.key.set(to_key);\n", ""),
    ("requeue forgets whom it moves", FUTEX, "        call.unix.futexes.add(waiter);\n", ""),
    ("an ended thread's word is not woken", FUTEX,
     "        wake(unix, key, count as usize, FUTEX_BITSET_MATCH_ANY);\n", "        let _ = (key, count, unix);\n"),
    ("a pipe's reader does not wake writers", PIPE,
     "                io.scheduler.wake(self.pipe.writable());\n", ""),
    ("a pipe's writer does not wake readers", PIPE,
     "                        io.scheduler.wake(self.pipe.readable());\n", ""),
    ("the last writer's close does not wake readers", PIPE,
     "            self.scheduler.wake(self.pipe.readable());\n", ""),
    ("the terminal's readers are not woken", TERMINAL,
     "            self.unix.scheduler.wake(&self.readers);\n", ""),
    ("a child's end does not wake its parent", CALLS + "life/family.rs",
     "    unix.scheduler.wake(&parent.children_changed);\n", ""),
    ("a signal does not end a sleep", CALLS + "signals/send.rs",
     "                unix.scheduler.unblock(&task.thread);\n", ""),
]

# Breaks that no program can see: not a failure when missed.
HARMLESS = [
    ("sleep sets an alarm that is due already", SCHEDULE,
     "            return Woken::Deadline;\n        }\n        for queue", "        }\n        for queue"),
]


def caught(path, old, new):
    """None: not there, or does not compile. Else whether the tests failed, and their words."""
    with open(path) as file:
        text = file.read()
    if old not in text:
        return None, "the line is not there any more"
    with open(path, "w") as file:
        file.write(text.replace(old, new))
    try:
        environment = dict(os.environ, RUST_BACKTRACE="0")
        words = []
        for test in (["-p", "simulated", "--test", "scheduling", "nothing_is_lost"], ["-p", "kernel", "schedule::"]):
            command = ["cargo", "test", "-q", *test]
            run = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
            lines = run.stdout.splitlines()
            words += [line for line in lines if line.startswith("seed ") or line.endswith("stdout ----")]
            if run.returncode:
                break
        if run.returncode and not words:
            return None, "does not compile"
        return run.returncode != 0, words[0][:110] if words else ""
    finally:
        with open(path, "w") as file:
            file.write(text)


def main():
    os.chdir(ROOT)
    missed = 0
    for name, path, old, new in MUTANTS + HARMLESS:
        found, words = caught(path, old, new)
        must = (name, path, old, new) in MUTANTS
        missed += must and not found
        print(f"{'caught' if found else 'MISSED' if found is False else 'BROKEN':8}{name} | {words}", flush=True)
    sys.exit(missed > 0)


main()
