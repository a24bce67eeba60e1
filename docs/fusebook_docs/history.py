"""When the files of a page were last changed, as git tells."""

import subprocess


def last_changes(root):
    """Path -> date of the newest commit that touched it. Empty where git cannot
    know: outside of a checkout, and in one without its history."""
    if _git(root, "rev-parse", "--is-shallow-repository") != "false\n":
        return {}
    found, date = {}, None
    log = _git(root, "log", "--format=%x01%cs", "--name-only")
    for line in (log or "").splitlines():
        if line.startswith("\x01"):
            date = line[1:]
        elif line:
            found.setdefault(line, date)
    return found


def _git(root, *words):
    try:
        done = subprocess.run(
            ["git", "-c", "core.quotepath=off", *words], cwd=root, text=True,
            capture_output=True, check=False, stdin=subprocess.DEVNULL)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None
