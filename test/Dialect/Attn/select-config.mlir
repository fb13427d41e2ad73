// RUN: attn-opt %s --split-input-file --attn-select-config=target=host | FileCheck %s --check-prefix=HOST
// RUN: attn-opt %s --split-input-file --attn-select-config=target=sm_80 | FileCheck %s --check-prefix=SM80
// RUN: attn-opt %s --split-input-file --attn-select-config=target=sm_86 | FileCheck %s --check-prefix=SM86
// RUN: attn-opt %s --split-input-file --attn-select-config=target=sm_90a | FileCheck %s --check-prefix=SM90

// HOST: configs = [#attn.config<rows = 16, keys = 64, stages = 1, warps = 1, pack = 4, row_table = true>]
// HOST-SAME: target = #attn.target<"host">
// SM80: configs = [#attn.config<rows = 16, keys = 128, groups = 4, pack = 4, row_table = true>, #attn.config<rows = 64, keys = 32, stages = 3, warps = 2, pack = 4, row_table = true>, #attn.config<rows = 128, keys = 32, stages = 3>]
// SM86: configs = [#attn.config<rows = 16, keys = 64, stages = 3, groups = 4, pack = 4, row_table = true>, #attn.config<rows = 64, keys = 32, stages = 3, warps = 2, pack = 4, row_table = true>, #attn.config<rows = 128, keys = 32, stages = 3>]
// SM90: configs = [#attn.config<rows = 16, keys = 128, groups = 4, pack = 4, row_table = true>, #attn.config<rows = 64, keys = 128, pack = 4, row_table = true, consumers = 1, q_in_registers = true, load = tma>, #attn.config<rows = 128, keys = 128, warps = 8, consumers = 2, q_in_registers = true, load = tma>]
func.func @gqa(%q: memref<?x32x128xbf16>, %qo: memref<?xi32>, %k: memref<?x16x8x128xbf16>, %v: memref<?x16x8x128xbf16>,
               %ind: memref<?xi32>, %idx: memref<?xi32>, %last: memref<?xi32>, %o: memref<?x32x128xbf16>) {
  attn.attention q(%q, %qo : memref<?x32x128xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x8x128xbf16>, memref<?x16x8x128xbf16>)
    indptr(%ind : memref<?xi32>) indices(%idx : memref<?xi32>) last(%last : memref<?xi32>)
    outs(%o : memref<?x32x128xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// Head dim 256, one head a KV head of 3, page 5: fewer keys, no boxes.
// HOST: configs = [#attn.config<rows = 16, keys = 64, stages = 1, warps = 1, pack = 3, row_table = true>]
// SM80: configs = [#attn.config<rows = 16, keys = 64, groups = 4, pack = 3, row_table = true>, #attn.config<rows = 64, keys = 64, pack = 3, row_table = true>, #attn.config<rows = 128, keys = 32, warps = 8>]
// SM86: configs = [{{.*}}rows = 16{{.*}}rows = 64
// SM90: configs = [#attn.config<rows = 16, keys = 64, stages = 3, groups = 4, pack = 3, row_table = true>, #attn.config<rows = 64, keys = 64, pack = 3, row_table = true>, #attn.config<rows = 128, keys = 64, warps = 8>]
func.func @wide(%q: memref<?x6x256xf16>, %qo: memref<?xi32>, %k: memref<?x5x2x256xf16>, %v: memref<?x5x2x256xf16>,
               %ind: memref<?xi32>, %idx: memref<?xi32>, %last: memref<?xi32>, %o: memref<?x6x256xf16>) {
  attn.attention q(%q, %qo : memref<?x6x256xf16>, memref<?xi32>)
    kv(%k, %v : memref<?x5x2x256xf16>, memref<?x5x2x256xf16>)
    indptr(%ind : memref<?xi32>) indices(%idx : memref<?xi32>) last(%last : memref<?xi32>)
    outs(%o : memref<?x6x256xf16>) {format = #attn.format<paged>}
  return
}

// -----

// 32 query heads a KV head: more than the rows of the smallest class.
// HOST: configs = [#attn.config<rows = 16, keys = 64, stages = 1, warps = 1, row_table = true>]
func.func @mqa(%q: memref<?x32x64xf16>, %qo: memref<?xi32>, %k: memref<?x1x64xf16>, %v: memref<?x1x64xf16>,
               %ind: memref<?xi32>, %o: memref<?x32x64xf16>) {
  attn.attention q(%q, %qo : memref<?x32x64xf16>, memref<?xi32>) kv(%k, %v : memref<?x1x64xf16>, memref<?x1x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x32x64xf16>) {format = #attn.format<ragged>}
  return
}

// -----

// Head dim 256 in pages of 16: consumers with Q in shared memory and 64 keys.
// SM90: configs = [#attn.config<rows = 16{{.*}}#attn.config<rows = 64, {{.*}}consumers = 1, load = tma>, #attn.config<rows = 128, keys = 64, warps = 8, consumers = 2, load = tma>]
func.func @deep(%q: memref<?x8x256xbf16>, %qo: memref<?xi32>, %k: memref<?x16x8x256xbf16>, %v: memref<?x16x8x256xbf16>,
               %ind: memref<?xi32>, %idx: memref<?xi32>, %last: memref<?xi32>, %o: memref<?x8x256xbf16>) {
  attn.attention q(%q, %qo : memref<?x8x256xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x8x256xbf16>, memref<?x16x8x256xbf16>)
    indptr(%ind : memref<?xi32>) indices(%idx : memref<?xi32>) last(%last : memref<?xi32>)
    outs(%o : memref<?x8x256xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// Hooks on heads: two consumers have fewer registers beside the role that transforms K, so Q stays in shared memory.
attn.variant @turned() {
  attn.hook key (%x: vector<128xf32>, %at: !attn.coord) {
    %y = arith.negf %x : vector<128xf32>
    attn.yield %y : vector<128xf32>
  }
}
// SM90: configs = [#attn.config<rows = 16, {{[^>]*}}>, #attn.config<rows = 64, keys = 128, row_table = true, consumers = 1, q_in_registers = true, load = tma>, #attn.config<rows = 128, keys = 128, warps = 8, consumers = 2, load = tma>]
func.func @hook(%q: memref<?x4x128xf16>, %qo: memref<?xi32>, %k: memref<?x4x128xf16>, %ind: memref<?xi32>, %o: memref<?x4x128xf16>) {
  attn.attention @turned() q(%q, %qo : memref<?x4x128xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x128xf16>, memref<?x4x128xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x128xf16>) {format = #attn.format<ragged>}
  return
}

// -----

// SM90: configs = [{{.*}}#attn.config<rows = 64, keys = 128, {{.*}}consumers = 1, {{.*}}#attn.config<rows = 128, keys = 128, warps = 8, consumers = 2,
func.func @small(%q: memref<?x4x32xf16>, %qo: memref<?xi32>, %k: memref<?x4x32xf16>, %ind: memref<?xi32>, %o: memref<?x4x32xf16>) {
  attn.attention q(%q, %qo : memref<?x4x32xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x32xf16>, memref<?x4x32xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x32xf16>) {format = #attn.format<ragged>}
  return
}

// -----

// 136 columns take three panels of 64 in shared memory, so two stages of 128 keys do not fit beside 128 rows.
// SM90: configs = [{{.*}}#attn.config<rows = 64, keys = 128, {{.*}}consumers = 1, {{.*}}#attn.config<rows = 128, keys = 64, warps = 8, consumers = 2,
func.func @panels(%q: memref<?x4x136xf16>, %qo: memref<?xi32>, %k: memref<?x4x136xf16>, %ind: memref<?xi32>, %o: memref<?x4x136xf16>) {
  attn.attention q(%q, %qo : memref<?x4x136xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x136xf16>, memref<?x4x136xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x136xf16>) {format = #attn.format<ragged>}
  return
}

// -----

// SM90: configs = [{{.*}}#attn.config<rows = 64, keys = 128, {{.*}}consumers = 1, {{.*}}#attn.config<rows = 128, keys = 128, warps = 8, consumers = 2,
func.func @sparse(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x16x4x64xf16>, %ind: memref<?xi32>, %idx: memref<?xi32>,
                  %last: memref<?xi32>, %o: memref<?x4x64xf16>) {
  attn.attention q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x16x4x64xf16>, memref<?x16x4x64xf16>)
    indptr(%ind : memref<?xi32>) indices(%idx : memref<?xi32>) last(%last : memref<?xi32>)
    outs(%o : memref<?x4x64xf16>) {format = #attn.format<bsr, row_block = 16>}
  return
}

// -----

// 8-bit K and V beside 16-bit stages of their own; GQA groups of 3, of which 21 fit into 64 rows.
// SM90: configs = [{{.*}}#attn.config<rows = 64, keys = 128, pack = 3, {{.*}}consumers = 1, {{.*}}#attn.config<rows = 128, keys = 128, warps = 8, consumers = 2,
func.func @bytes(%q: memref<?x6x128xf16>, %qo: memref<?xi32>, %k: memref<?x2x128xf8E4M3FN>, %ind: memref<?xi32>, %o: memref<?x6x128xf16>) {
  attn.attention q(%q, %qo : memref<?x6x128xf16>, memref<?xi32>) kv(%k, %k : memref<?x2x128xf8E4M3FN>, memref<?x2x128xf8E4M3FN>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x6x128xf16>) {format = #attn.format<ragged>}
  return
}
