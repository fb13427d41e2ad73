//===- embed.c - the C API of the compiler ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/* The C API: IR text in, bundle out. usage: embed-c FILE.mlir TARGET OUT */
#include "attn-c/Compiler.h"
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: embed-c FILE.mlir TARGET OUT\n");
    return 2;
  }
  FILE *file = fopen(argv[1], "rb");
  if (!file) {
    fprintf(stderr, "embed-c: cannot read %s\n", argv[1]);
    return 1;
  }
  char *text = malloc(1 << 20);
  size_t size = fread(text, 1, 1 << 20, file);
  fclose(file);
  AttnCompileOptions options = {sizeof(options), argv[2], "bundle", NULL, NULL, NULL};
  AttnCompileResult *result = NULL;
  if (attnCompile(text, size, &options, &result) != ATTN_COMPILER_OK) {
    fprintf(stderr, "embed-c: %s\n", attnCompilerLastError());
    free(text);
    return 1;
  }
  FILE *out = fopen(argv[3], "wb");
  int ok = out && fwrite(attnCompileResultData(result), 1, attnCompileResultSize(result), out) ==
                      attnCompileResultSize(result);
  if (out)
    fclose(out);
  attnCompileResultDestroy(result);
  free(text);
  return ok ? 0 : 1;
}
