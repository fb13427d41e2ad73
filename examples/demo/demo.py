#!/usr/bin/env python3
"""The demo: two variants on one serving step of a real trace.

Compiles each variant, plans a mixed paged batch (decodes and prefill chunks over a shared prefix, which is a level of
its own), runs it on the CPU and, when there is one, on the GPU, checks it against the double-precision reference, prints
a table, and draws the plan. Everything goes through attn-run, as a user would.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VARIANTS = ["softcap", "sink_window"]


def has_gpu():
    return shutil.which("nvidia-smi") is not None and subprocess.run(
        ["nvidia-smi", "-L"], capture_output=True, text=True).stdout.startswith("GPU")


def with_params(batch, variant, folder):
    """The batch with the variant's own parameters, as a file."""
    content = dict(batch)
    content["params"] = json.loads((HERE / "Inputs" / f"{variant}.json").read_text()).get("params", {})
    file = folder / f"demo_{variant}.json"
    file.write_text(json.dumps(content))
    return file


def describe(batch):
    """The batch in words."""
    requests = [(r["qo"], r["kv"]) for r in batch["requests"] for _ in range(r.get("count", 1))]
    decodes = sum(qo == 1 for qo, _ in requests)
    chunks = [qo for qo, _ in requests if qo > 1]
    lines = [f"{len(requests)} requests: {decodes} decode one token, {len(chunks)} compute a prefill chunk "
             f"(of {', '.join(map(str, chunks))} tokens); {min(kv for _, kv in requests)} to {max(kv for _, kv in requests)} keys each"]
    for level in batch.get("levels", []):
        first, last = level["requests"]
        lines.append(f"requests {first} to {last} share a prefix of {level['prefix']} keys: it is a level of its own, "
                     "whose tiles hold rows of several requests")
    return lines


def run(tool, variant, batch, device, picture):
    command = [str(tool), str(HERE / f"{variant}.mlir"), f"--batch={batch}", f"--device={device}",
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
    build = ROOT / arguments.build
    batch = json.loads(pathlib.Path(arguments.batch).read_text())
    devices = ["cpu"] + (["cuda"] if has_gpu() else [])

    columns = [("variant", -12), ("device", -8), ("tokens", 7), ("keys", 8), ("items", 7), ("compile ms", 12), ("plan us", 9),
               ("run ms", 10), ("max error", 11), ("allowed", 9), ("check", 7)]
    row = lambda values: "  " + "".join(f"{value:>{width}}" if width > 0 else f"{value:<{-width}}"
                                        for value, (_, width) in zip(values, columns))
    print(f"\nattn-mlir demo: one serving step of a trace ({pathlib.Path(arguments.batch).name}), pages of 16 keys, bf16")
    for line in describe(batch):
        print(f"  {line}")
    print("\n" + row([name for name, _ in columns]))
    pictures, failed = [], False
    for variant in VARIANTS:
        for device in devices:
            picture = build / f"plan_{variant}_{device}.svg"
            report, status = run(build / "bin" / "attn-run", variant, with_params(batch, variant, build), device, picture)
            failed |= status != 0 or not report["ok"]
            pictures.append(picture)
            print(row([variant, device, report["tokens"], report["keys"], report["items"], f"{report['compile_ms']:.0f}",
                       f"{report['plan_us']:.0f}", f"{report['run_ms']:.3f}", f"{report['max_error']:.1e}",
                       f"{report['allowed']:.1e}", "ok" if report["ok"] else "WRONG"]), flush=True)
    print("\n  items: pieces of work in the plan; max error: against a reference in double precision, on every row")
    if len(devices) == 1:
        print("  no GPU here, so the CPU only; the same IR is compiled for it with attn-compile --target=sm_80 (or sm_90a)")
    print("  the plans as pictures (open in a browser): " + " ".join(os.path.relpath(p) for p in pictures))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
