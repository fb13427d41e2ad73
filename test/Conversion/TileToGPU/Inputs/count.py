"""count.py FILE.ptx KERNEL: instructions of the innermost loop that has the most matrix products, over all its blocks."""
import collections, re, sys

text = open(sys.argv[1]).read()
body = text[text.index(f".entry {sys.argv[2]}(") :]
body = body[: body.index("\n}\n")]
lines = body.splitlines()
labels = {m.group(1): i for i, l in enumerate(lines) if (m := re.match(r"(\$L__BB\w+):", l))}
loops = []
for i, l in enumerate(lines):
    m = re.search(r"bra(?:\.uni)?\s+(\$L__BB\w+);", l)
    if m and labels.get(m.group(1), i) < i:
        loops.append((labels[m.group(1)], i))
count = lambda a, b: sum(x.count("wgmma.mma_async") for x in lines[a:b])
# Innermost: no other loop with products inside.
inner = [(a, b) for a, b in loops if count(a, b) and not any(a <= c and d <= b and (c, d) != (a, b) and count(c, d) for c, d in loops)]
a, b = max(inner, key=lambda x: count(*x))
ops = collections.Counter()
for l in lines[a:b]:
    l = re.sub(r"^\s*(@!?%\w+\s+)?", "", l)
    ops["wgmma"] += l.count("wgmma.mma_async")
    if l.startswith(("{", "}", "//", ".", "$")):
        continue
    m = re.match(r"(ex2|mul|fma|max|add|cvt|setp|mov|ld|st)\.(\S*)", l)
    if m and (m.group(1) not in ("mul", "fma", "add", "max") or "f32" in m.group(2)) and (m.group(1) != "cvt" or "bf16x2" in m.group(2)):
        ops[m.group(1)] += 1
print(" ".join(f"{k} {ops[k]}" for k in ("wgmma", "ex2", "mul", "fma", "max", "add", "cvt", "setp", "mov", "ld", "st")))
