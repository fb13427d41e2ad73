"""What cases.py, hooks.py, matrix.py and tables.py share: their options, attn-run on a module and its batch file, many at a time."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def make_parser(doc, timeout):
    """The options of all, from the first line of the script's text."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--tool", default="build/bin/attn-run")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--target", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--timeout", type=float, default=timeout)
    parser.add_argument("--keep", default="", help="folder for the modules and batch files")
    return parser


def write(folder, name, text, batch):
    """NAME.mlir and NAME.json; returns the paths."""
    ir, file = folder / f"{name}.mlir", folder / f"{name}.json"
    ir.write_text(text)
    file.write_text(json.dumps(batch, indent=1))
    return ir, file


def command(options, ir, file):
    """attn-run with its check."""
    target = [f"--target={options.target}"] if options.target else []
    return [options.tool, str(ir), f"--batch={file}", f"--device={options.device}", "--check"] + target


def pipelines(options, ir):
    """With --opt: the module through the pipelines to sm_80 and sm_90a."""
    return [[options.opt, str(ir), f"--attn-select-config=target={chip}", "--attn-to-tile", f"--attn-gpu-pipeline=chip={chip}", "-o", os.devnull]
            for chip in ("sm_80", "sm_90a") if options.opt]


def execute(line, timeout):
    """(exit status or "timeout", what it printed)"""
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return "timeout", ""
    return done.returncode, done.stdout + done.stderr


def run_numbers(doc, run):
    """The main program of a script whose cases are numbers: run(number, options, folder)."""
    parser = make_parser(doc, timeout=300)
    parser.add_argument("--opt", default="")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", type=int, default=-1)
    options = parser.parse_args()
    numbers = list(range(options.count)) if options.only < 0 else [options.only]
    return run_all(options, numbers, lambda number, folder: run(number, options, folder))


def run_all(options, names, run, describe=str):
    """run(name, folder) -> (status, output) for all names; prints failures, then "N passed, N failed". The exit status."""
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(options.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for name, (status, output) in zip(names, pool.map(lambda name: run(name, folder), names)):
                if status != 0:
                    failed += 1
                    print(f"FAILED {describe(name)}\n  status {status}: {output.strip()[-600:]}", flush=True)
    if failed and len(names) > 1:
        print(f"repeat one: {' '.join(sys.argv)} --only NAME --keep DIR")
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed else 0
