"""Writes a page's code blocks into a folder: blocks.py PAGE OUT. Block n of language L becomes OUT/L<n>; shell blocks and
untagged ones are commands (comments after the command go), without the lines that need a GPU or a person to fill them in."""

import pathlib
import re
import sys
import textwrap

SKIPPED = ("--device=cuda", "lit -", "PREFIX", "/tmp/embed", "./dev")
page, out = map(pathlib.Path, sys.argv[1:])
out.mkdir(parents=True, exist_ok=True)
counts = {}
for tag, body in re.findall(r"^ *```(\w*)\n(.*?)^ *```", page.read_text(), re.M | re.S):
    language, body = tag or "sh", textwrap.dedent(body)
    if language == "sh":
        lines = [re.sub(r"\s+#.*| +or .*", "", line.strip()) for line in body.splitlines()]
        body = "\n".join(line for line in lines if line and not any(word in line for word in SKIPPED)) + "\n"
    counts[language] = counts.get(language, 0) + 1
    (out / f"{language}{counts[language]}").write_text(body)
print(" ".join(f"{language}:{count}" for language, count in sorted(counts.items())))
