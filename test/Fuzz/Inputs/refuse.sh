#!/bin/sh
# Refuses everything, as a tool should.
echo "input.mlir:1:1: error: refused" >&2
exit 1
