#!/usr/bin/env python3
"""The demo: two variants on one serving step of a real trace.

Compiles each variant, plans a mixed paged batch (decodes and prefill chunks, a shared prefix), runs it on the
CPU and, when there is one, on the GPU, checks it against the double-precision reference, prints a table, and writes the
plan as a picture. Everything goes through attn-run, as a user would.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
VARIANTS = ["softcap", "sink_window"]


def has_gpu():
    return shutil.which("nvidia-smi") is not None and subprocess.run(
        ["nvidia-smi", "-L"], capture_output=True, text=True).stdout.startswith("GPU")


def with_params(batch, variant, folder):
    """The batch with the variant's own parameters, as a file."""
    content = json.loads(pathlib.Path(batch).read_text())
    content["params"] = json.loads((ROOT / "examples" / "variants" / "Inputs" / f"{variant}.json").read_text()).get("params", {})
    file = folder / f"demo_{variant}.json"
    file.write_text(json.dumps(content))
    return file


def run(tool, variant, batch, device, picture):
    command = [str(tool), str(ROOT / "examples" / "variants" / f"{variant}.mlir"), f"--batch={batch}", f"--device={device}",
               "--check", "--json", "--iters=3", f"--plan-svg={picture}"]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(done.stdout), done.returncode
    except json.JSONDecodeError:
        sys.exit(f"demo: {' '.join(command)}\nfailed with status {done.returncode}:\n{done.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--batch", default=str(ROOT / "examples" / "batches" / "trace_mixed.json"))
    arguments = parser.parse_args()
    tool = ROOT / arguments.build / "bin" / "attn-run"
    devices = ["cpu"] + (["cuda"] if has_gpu() else [])
    picture = ROOT / arguments.build / "plan.svg"

    columns = [("variant", 14), ("device", 7), ("requests", 9), ("tokens", 7), ("keys", 8), ("items", 6), ("compile ms", 11),
               ("plan us", 9), ("run ms", 9), ("max error", 10), ("allowed", 9), ("", 6)]
    print()
    print("one serving step of a trace: decodes and prefill chunks; requests with a common prefix share its pages")
    print("".join(f"{name:>{width}}" for name, width in columns))
    failed = False
    for variant in VARIANTS:
        for device in devices:
            report, status = run(tool, variant, with_params(arguments.batch, variant, ROOT / arguments.build), device, picture)
            failed |= status != 0
            values = [variant, device, report["requests"], report["tokens"], report["keys"], report["items"],
                      f"{report['compile_ms']:.0f}", f"{report['plan_us']:.0f}", f"{report['run_ms']:.3f}",
                      f"{report['max_error']:.1e}", f"{report['allowed']:.1e}", "ok" if report["ok"] else "WRONG"]
            print("".join(f"{value:>{width}}" for value, (_, width) in zip(values, columns)))
    if len(devices) == 1:
        print("no GPU here: the same program ran on the CPU only")
    print(f"the plan as a picture: {picture}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
