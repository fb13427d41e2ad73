"""examples.py FOLDER CHIP...: compiles every variant of FOLDER for each chip with the chooser's configs; attn-compile refuses spills."""
import concurrent.futures, pathlib, subprocess, sys

def compile(job):
    path, chip = job
    done = subprocess.run(["attn-compile", path, f"--target={chip}", "--emit=cubin", "-o", "/dev/null"], capture_output=True, text=True)
    return path, chip, done.returncode, done.stderr

jobs = [(path, chip) for chip in sys.argv[2:] for path in sorted(pathlib.Path(sys.argv[1]).glob("*.mlir"))]
bad = 0
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for path, chip, status, text in pool.map(compile, jobs):
        if status:
            bad += 1
            print(f"{path.name} {chip}: {text[:400]}")
print(f"{len(jobs) - bad} of {len(jobs)} without spills")
sys.exit(bad != 0 or not jobs)
