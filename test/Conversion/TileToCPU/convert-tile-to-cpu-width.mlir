// RUN: not attn-opt %s --convert-tile-to-cpu=width=5 2>&1 | FileCheck %s
// CHECK: error: option 'width' is 5, expected 4, 8 or 16
module {}
