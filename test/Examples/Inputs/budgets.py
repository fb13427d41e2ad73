#!/usr/bin/env python3
"""Static budgets of the example variants: what ptxas says of their kernels, and what the key loop of the largest class costs.

  budgets.py VARIANTS BUDGETS.json [--write] [--chip CHIP] [--only NAME] [--compiler C] [--ptxas P] [--jobs N]

The first configs that the compiler chooses have to fit: no spills, no serialised products, not more registers than before. The key loop
is the cheapest loop of products in the PTX, and of it the shortest way with all products, so the one without masks where there is one. Its instructions by kind, for 16 keys and one
thread, must stay within 3 % and two instructions of the table; --write writes a new one. Exit status 1 when something is over."""
import argparse, concurrent.futures, json, os, re, subprocess, sys, tempfile

KINDS = [("products", r"wgmma\.mma_async|mma\.sync"), ("exponentials", r"ex2\."), ("tanh", r"tanh\."), ("special", r"(rcp|lg2|sqrt|rsqrt|sin|cos|div)\."),
         ("fma", r"fma\.rn"), ("multiply", r"mul\.(rn\.)?(ftz\.)?f(32|16|16x2)"), ("add", r"(add|sub)\.(rn\.)?(ftz\.)?f(32|16|16x2)"),
         ("maximum", r"(max|min)\.(ftz\.)?(nan\.)?f32"), ("compare", r"setp\."), ("select", r"selp\."), ("convert", r"cvt\."), ("load", r"ld\.|ldmatrix"),
         ("store", r"st\.|stmatrix"), ("integer", r"(add|sub|mul|mad|shl|shr|and|or|xor|not|neg|min|max|lop3|bfe|bfi|prmt)\.")]
TOLERANCE, SLACK = 1.03, 2


def loops(text):
    """Loops of products of a function, without the loops around others: lists of opcodes on the shortest way from a label to a branch back to it."""
    places, found, ops, branches = {}, [], [], {}
    for line in text.splitlines():
        label = re.match(r"(\$L__BB\d+_\d+):", line)
        if label:
            places[label[1]] = len(ops)
            continue
        # Several instructions of inline assembly may share a line.
        for piece in line.split(";"):
            op = re.match(r"[\s{]*(?:@!?%\w+\s+)?([a-z][\w.:]*)", piece)
            if not op or op[1].startswith(("reg", "begin", "end")):
                continue
            ops.append(op[1])
            target = re.search(r"(\$L__BB\d+_\d+)", piece) if op[1].startswith("bra") else None
            if target:
                branches[len(ops)] = (target[1], "@" in piece)
            if target and target[1] in places:
                found.append((places[target[1]], len(ops)))
    found = [(a, b) for a, b in found if any(re.match(KINDS[0][1], op) for op in ops[a:b])]
    inner = [a for a in found if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in found)]
    return [shortest(ops, a, b, places, branches) for a, b in inner]


def shortest(ops, a, b, places, branches):
    """Opcodes on the way from a to b, forward only, that has the most products and then the fewest instructions."""
    best = {a: (0, 0, None)}  # of a place: products with a minus, instructions, the place before
    for at in range(a, b):
        if at not in best:
            continue
        product = bool(re.match(KINDS[0][1], ops[at]))
        reached = (best[at][0] - product, best[at][1] + 1, at)
        target, conditional = branches.get(at + 1, (None, True))
        for place in ([at + 1] if conditional or at + 1 == b else []) + ([places[target]] if target else []):
            if at < place <= b and reached < best.get(place, (1, 0, 0)):
                best[place] = reached
    way, at = [], b
    while best[at][2] is not None:
        at = best[at][2]
        way.append(ops[at])
    return way[::-1]


def count(ops):
    counts = {"all": len(ops)}
    for op in ops:
        kind = next((name for name, pattern in KINDS if re.match(pattern, op)), "other")
        counts[kind] = counts.get(kind, 0) + 1
    return counts


def measure(args, chip, name, folder):
    """{"kernels": {symbol: registers}, "config", "keys", "loop": counts}; errors as a list of texts."""
    path = os.path.join(folder, f"{chip}-{name}.ptx")
    source = os.path.join(args.variants, name + ".mlir")
    done = subprocess.run([args.compiler, source, f"--target={chip}", "--emit=ptx", "--configs", "-o", path], capture_output=True, text=True)
    if done.returncode:
        return None, [f"{chip} {name}: {done.stderr.strip()[:300]}"]
    configs = dict(re.findall(r"^(\w+): (#attn\.config<.*>) \(", done.stderr, re.M))
    done = subprocess.run([args.ptxas, f"-arch={chip}", "-v", "-O3", path, "-o", os.devnull], capture_output=True, text=True)
    said = done.stdout + done.stderr
    if done.returncode:
        return None, [f"{chip} {name}: ptxas: {said.strip()[:300]}"]
    wrong, kernels = [], {}
    for part in said.split("Compiling entry function '")[1:]:
        symbol = part.split("'")[0]
        spills = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part)
        kernels[symbol] = int(re.search(r"Used (\d+) registers", part)[1])
        if not spills or any(int(x) for x in spills.groups()):
            wrong.append(f"{chip} {symbol}: {spills[0] if spills else 'no report'}, expected none")
    for warning in re.findall(r".*\(C751[0-8]\).*", said):
        wrong.append(f"{chip} {name}: {warning}")
    symbol = max(configs, key=lambda s: int(re.search(r"_r(\d+)$", s)[1]))
    body = re.search(r"\.entry %s\(.*?\n}\n" % symbol, open(path).read(), re.S)
    key_loops = loops(body[0])
    if not key_loops:
        return None, wrong + [f"{chip} {symbol}: no loop of products found"]
    keys = int(re.search(r"keys = (\d+)", configs[symbol])[1])
    loop = count(min(key_loops, key=len))
    return dict(config=configs[symbol], registers=kernels, loop={k: round(v * 16 / keys, 2) for k, v in sorted(loop.items())}), wrong


def compare(title, new, old):
    wrong = []
    for symbol, registers in new["registers"].items():
        if registers > old["registers"].get(symbol, 255):
            wrong.append(f"{title} {symbol}: {registers} registers, {old['registers'][symbol]} before")
    keys = int(re.search(r"keys = (\d+)", new["config"])[1])
    for kind, value in new["loop"].items():
        before = old["loop"].get(kind, 0)
        if value > before * TOLERANCE + SLACK * 16 / keys:
            wrong.append(f"{title}: {value:.1f} of '{kind}' for 16 keys in the key loop, the budget is {before:.1f} ({new['config']}, before {old['config']})")
    return wrong


p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("variants"); p.add_argument("budgets")
p.add_argument("--write", action="store_true"); p.add_argument("--chip"); p.add_argument("--only")
p.add_argument("--compiler", default="attn-compile"); p.add_argument("--ptxas", default="ptxas"); p.add_argument("--jobs", type=int, default=2)
args = p.parse_args()
table = json.load(open(args.budgets)) if os.path.exists(args.budgets) else {}
names = sorted(f[:-5] for f in os.listdir(args.variants) if f.endswith(".mlir"))
names = [n for n in names if not args.only or n in args.only.split(",")]
chips = args.chip.split(",") if args.chip else ["sm_80", "sm_90a"]
failed, new = 0, {}
with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
    jobs = {(chip, name): pool.submit(measure, args, chip, name, folder) for chip in chips for name in names}
    for (chip, name), job in jobs.items():
        found, wrong = job.result()
        title = f"{chip} {name}"
        if found:
            new[title] = found
            if not args.write:
                wrong = wrong + (compare(title, found, table[title]) if title in table else [f"{title}: has no budget; write one with --write"])
        print("\n".join("OVER " + w for w in wrong) or f"{title}: within its budget", flush=True)
        failed |= bool(wrong)
if args.write:
    table.update(new)
    with open(args.budgets, "w") as f:
        f.write("{\n" + ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in sorted(table.items())) + "\n}\n")
sys.exit(failed)
