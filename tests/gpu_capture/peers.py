"""PyTorch's optimizers beside ours: every group of variants in a process of
its own, with so much time, after which it is "not finished"."""

import json
import os
from pathlib import Path

from running import run

SECONDS = 90.0
LEAST_SECONDS = 5.0  # below this nothing is begun
SCRIPT = Path(__file__).resolve().parent / "peer_torch.py"
NOT_INSTALLED = 3
GROUPS = ("eager", "compile-max-autotune", "compile-default")
CASES = {
    "10 x 1024 x 1024": ["1048576:10"],
    "1000 x 64": ["64:1000"],
    "10000 x 64": ["64:10000"],
    "GPT-2 small": ["38597376:1", "786432:1", *12 * [
        "768:2", "1769472:1", "2304:1", "589824:1", "768:1", "768:2",
        "2359296:1", "3072:1", "2359296:1", "768:1"], "768:2"],
    "1 x 2^28": ["268435456:1"],
}


def measure(report, root, limit, script=SCRIPT, cases=None, seconds=SECONDS):
    """Measures every case. Returns the rows, which are in peers.json too."""
    report.stage("PyTorch beside it")
    if report.gpu.simulated and script is SCRIPT:
        report.left_out("a simulated GPU has no peers")
        return []
    rows, end = [], report.left - limit
    cases = cases or CASES
    for group, case in in_order(cases):
        left = report.left - end
        if left < LEAST_SECONDS:
            _add(report, rows, case, group, "no time left")
            continue
        done = run(_command(report, script, group, case, cases[case]),
                   report.log(f"peer-{group}-{case.replace(' ', '')}"),
                   min(seconds, left), root)
        if done.status == NOT_INSTALLED:
            report.left_out(f"not installed: {done.last_line}")
            _write(report, rows)
            return rows
        _read(report, rows, case, group, done)
    return rows


def in_order(cases):
    """Groups with cases. Compiling many tensors takes minutes, and time may run
    out: what is quick comes first, and the largest number of tensors last."""
    pairs = [(group, case) for group in GROUPS for case in cases]
    return sorted(pairs, key=lambda pair: pair[0] != "eager" and
                  _place(_tensors(cases[pair[1]])))


def _place(tensors):
    """A thousand before a hundred: the page speaks of those."""
    return 1 if tensors < 100 else 2 if tensors == 1000 else 3


def _tensors(runs):
    return sum(int(run.partition(":")[2]) for run in runs)


def compare(report, rows):
    """Our compiled step beside the best peer, by wall clock."""
    try:
        text = (report.folder / "bench.json").read_text(encoding="utf-8")
    except OSError:
        return
    best = {}
    for row in rows:
        if row["us"]:
            known = best.get(row["case"], row)
            best[row["case"]] = min(known, row, key=lambda of: of["us"])
    for own in json.loads(text)["rows"]:
        peer = best.get(own["case"])
        if own["variant"] == "compiled" and own["us"] and peer:
            report.note(f"{own['case']}: compiled {own['us']:.2f} us, "
                        f"{own['us'] / peer['us']:.3f} x {peer['variant']}")


def _command(report, script, group, case, sizes):
    python = os.environ.get("FUSEBOOK_PYTHON_TORCH") or "python3"
    return [python, "-B", script, report.gpu.device, group, case, *sizes]


def _read(report, rows, case, group, done):
    """What was measured before the end counts, however it ended."""
    for line in done.text.splitlines():
        if line.startswith("{"):
            row = json.loads(line)
            rows.append(row)
            report.good(f"{case}: {row['variant']}: {row['us']:.2f} us")
    if done.status is None:
        _add(report, rows, case, group, "not finished")
    elif done.status != 0:
        _add(report, rows, case, group, done.ending)
    _write(report, rows)


def _add(report, rows, case, group, reason):
    rows.append({"case": case, "variant": group, "us": None,
                 "reason": reason})
    report.note(f"{'':13}{case}: {group}: {reason}")
    _write(report, rows)


def _write(report, rows):
    lines = ",\n".join(f"    {json.dumps(row)}" for row in rows)
    aside = report.folder / ".peers.json"
    aside.write_text(f'{{\n  "rows": [\n{lines}\n  ]\n}}\n', encoding="utf-8")
    os.replace(aside, report.folder / "peers.json")
