#!/usr/bin/env python3
# ===- untested_messages.py - error messages that no test expects -----------===//
#
# Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===------------------------------------------------------------------------===//
"""Lists the error messages in lib/ and tools/ that no test mentions: file:line: text.

    utils/untested_messages.py [--window N] [PATH...]

A message is what is streamed or passed to emitError, emitOpError, createStringError and the like. It counts as tested
when some N characters (16) in a row of one of its literals stand in a file of test/. Exit status 1 when any is left.
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
CALL = re.compile(r"\b(?:emitError|emitOpError|createStringError|fail|error|bad|invalid|makeError)\s*\(")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
SKIPPED = re.compile(r"^\s*#|^\s*//")


def statement(text, start):
    """From `start` to the semicolon or the brace that ends the statement, strings respected."""
    depth, i = 0, start
    while i < len(text):
        c = text[i]
        if c == '"':
            i = LITERAL.match(text, i).end() if LITERAL.match(text, i) else i + 1
            continue
        if c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
            if depth < 0:
                return text[start:i]
        elif c in ";{}" and depth <= 0:
            return text[start:i]
        i += 1
    return text[start:]


def joined(text):
    """Adjacent C++ literals as one."""
    return re.sub(r'"\s*\n\s*"', "", text)


def messages(path):
    text = joined("\n".join("" if SKIPPED.match(line) else line for line in path.read_text().splitlines()))
    done = 0
    original = path.read_text()
    for call in CALL.finditer(text):
        if call.start() < done:
            continue
        body = statement(text, call.start())
        done = call.start() + len(body)
        literals = [m.group(1).replace('\\"', '"') for m in LITERAL.finditer(body)]
        literals = [l for l in literals if re.search(r"[a-z]{3}.* [a-z]", l)]
        if literals:
            at = original.find(max(literals, key=len)[:20])
            yield original.count("\n", 0, max(at, 0)) + 1, literals


def tested(literals, corpus, window):
    for literal in literals:
        text = " ".join(literal.split())
        size = min(window, len(text))
        if any(text[i : i + size] in corpus for i in range(len(text) - size + 1)):
            return True
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", default=["lib", "tools"])
    parser.add_argument("--window", type=int, default=16)
    options = parser.parse_args()
    corpus = []
    for path in sorted((ROOT / "test").rglob("*")) + sorted((ROOT / "examples").rglob("*.mlir")):
        if path.suffix in (".mlir", ".test", ".cpp", ".h", ".py", ".c") and path.is_file():
            corpus.append(joined(path.read_text(errors="replace")).replace('\\"', '"'))
    corpus = " ".join(" ".join(corpus).split())
    total = left = 0
    for base in options.paths:
        base = ROOT / base
        for path in sorted(base.rglob("*.cpp")) + sorted(base.rglob("*.h")) if base.is_dir() else [base]:
            for line, literals in messages(path):
                total += 1
                if not tested(literals, corpus, options.window):
                    left += 1
                    print(f"{path.relative_to(ROOT)}:{line}: {' … '.join(literals)}")
    print(f"{left} of {total} messages are in no test", file=sys.stderr)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
