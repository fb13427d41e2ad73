#!/bin/bash
# Breaks in three ways, as a tool should not.
case $1 in
  --first) kill -SEGV $$ ;;
  --second) echo "tool: file.cpp:1: void f(): Assertion \`x' failed." >&2; exit 134 ;;
  --third) exec sleep 60 ;;
esac
