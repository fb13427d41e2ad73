// RUN: attn-opt %s --split-input-file --attn-select-config=target=host | FileCheck %s --check-prefix=HOST
// RUN: attn-opt %s --split-input-file --attn-select-config=target=sm_80 | FileCheck %s --check-prefix=SM80
// RUN: attn-opt %s --split-input-file --attn-select-config=target=sm_86 | FileCheck %s --check-prefix=SM86
// RUN: attn-opt %s --split-input-file --attn-select-config=target=sm_90a | FileCheck %s --check-prefix=SM90

// HOST: configs = [#attn.config<rows = 16, keys = 64, stages = 1, warps = 1, pack = 4, row_table = true>]
// HOST-SAME: target = #attn.target<"host">
// SM80: configs = [#attn.config<rows = 16, keys = 128, groups = 4, pack = 4, row_table = true>, #attn.config<rows = 64, keys = 32, stages = 3, warps = 2, pack = 4, row_table = true>, #attn.config<rows = 128, keys = 32, stages = 3>]
// SM86: configs = [#attn.config<rows = 16, keys = 64, stages = 3, groups = 4, pack = 4, row_table = true>, #attn.config<rows = 64, keys = 32, stages = 3, warps = 2, pack = 4, row_table = true>, #attn.config<rows = 128, keys = 32, stages = 3>]
// SM90: configs = [#attn.config<rows = 16, keys = 128, groups = 4, pack = 4, row_table = true>, #attn.config<rows = 64, keys = 128, pack = 4, row_table = true, consumers = 1, q_in_registers = true, load = tma>, #attn.config<rows = 128, keys = 128, warps = 8, consumers = 2, q_in_registers = true, load = tma, turns = true>]
func.func @gqa(%q: memref<?x32x128xbf16>, %qo: memref<?xi32>, %k: memref<?x16x8x128xbf16>, %v: memref<?x16x8x128xbf16>,
               %ind: memref<?xi32>, %idx: memref<?xi32>, %last: memref<?xi32>, %o: memref<?x32x128xbf16>) {
  attn.attention q(%q, %qo : memref<?x32x128xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x8x128xbf16>, memref<?x16x8x128xbf16>)
    indptr(%ind : memref<?xi32>) indices(%idx : memref<?xi32>) last(%last : memref<?xi32>)
    outs(%o : memref<?x32x128xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// Head dim 256, one head a KV head of 3, page 5: fewer keys, and threads that gather.
// HOST: configs = [#attn.config<rows = 16, keys = 64, stages = 1, warps = 1, pack = 3, row_table = true>]
// SM80: configs = [#attn.config<rows = 16, keys = 64, groups = 4, pack = 3, row_table = true>, #attn.config<rows = 64, keys = 64, pack = 3, row_table = true>, #attn.config<rows = 128, keys = 32, warps = 8>]
// SM86: configs = [{{.*}}rows = 16{{.*}}rows = 64
// SM90: configs = [#attn.config<rows = 16, keys = 64, stages = 3, groups = 4, pack = 3, row_table = true>, #attn.config<rows = 64, keys = 80, pack = 3, row_table = true, consumers = 1>, #attn.config<rows = 128, keys = 64, warps = 8, consumers = 2, turns = true>]
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
// SM90: configs = [#attn.config<rows = 16{{.*}}#attn.config<rows = 64, {{.*}}consumers = 1, load = tma>, #attn.config<rows = 128, keys = 64, warps = 8, consumers = 2, load = tma, turns = true>]
func.func @deep(%q: memref<?x8x256xbf16>, %qo: memref<?xi32>, %k: memref<?x16x8x256xbf16>, %v: memref<?x16x8x256xbf16>,
               %ind: memref<?xi32>, %idx: memref<?xi32>, %last: memref<?xi32>, %o: memref<?x8x256xbf16>) {
  attn.attention q(%q, %qo : memref<?x8x256xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x8x256xbf16>, memref<?x16x8x256xbf16>)
    indptr(%ind : memref<?xi32>) indices(%idx : memref<?xi32>) last(%last : memref<?xi32>)
    outs(%o : memref<?x8x256xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// How K and V come to consumers: threads gather from pages of 12, of which a tensor copy of 128 keys takes 4 rows; boxes of
// 8 rows make pages of 24.
// SM90: configs = [#attn.config<rows = 16{{.*}}#attn.config<rows = 64, keys = 128, row_table = true, consumers = 1, q_in_registers = true>, #attn.config<rows = 128, keys = 128, warps = 8, consumers = 2, q_in_registers = true, turns = true>]
func.func @gather(%q: memref<?x8x128xbf16>, %qo: memref<?xi32>, %k: memref<?x12x8x128xbf16>, %v: memref<?x12x8x128xbf16>,
                  %ind: memref<?xi32>, %idx: memref<?xi32>, %last: memref<?xi32>, %o: memref<?x8x128xbf16>) {
  attn.attention q(%q, %qo : memref<?x8x128xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x12x8x128xbf16>, memref<?x12x8x128xbf16>)
    indptr(%ind : memref<?xi32>) indices(%idx : memref<?xi32>) last(%last : memref<?xi32>)
    outs(%o : memref<?x8x128xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// SM90: configs = [#attn.config<rows = 16{{.*}}#attn.config<rows = 64, {{.*}}load = tma>, #attn.config<rows = 128, {{.*}}load = tma, turns = true>]
func.func @boxes(%q: memref<?x8x128xbf16>, %qo: memref<?xi32>, %k: memref<?x24x8x128xbf16>, %v: memref<?x24x8x128xbf16>,
                 %ind: memref<?xi32>, %idx: memref<?xi32>, %last: memref<?xi32>, %o: memref<?x8x128xbf16>) {
  attn.attention q(%q, %qo : memref<?x8x128xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x24x8x128xbf16>, memref<?x24x8x128xbf16>)
    indptr(%ind : memref<?xi32>) indices(%idx : memref<?xi32>) last(%last : memref<?xi32>)
    outs(%o : memref<?x8x128xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// Small heads and no mask: three consumers hide the softmax best; with a mask two, whose tiles are less in vain.
// SM90: configs = [#attn.config<rows = 16, {{[^>]*}}>, #attn.config<rows = 64, keys = 128, row_table = true, consumers = 1, q_in_registers = true, load = tma>, #attn.config<rows = 192, keys = 128, warps = 12, consumers = 3, load = tma, turns = true>]
func.func @tall(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x4x64xf16>, %ind: memref<?xi32>, %o: memref<?x4x64xf16>) {
  attn.attention q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x64xf16>, memref<?x4x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x64xf16>) {format = #attn.format<ragged>}
  return
}

// -----

attn.variant @causal() {
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %in = arith.cmpi sle, %k, %q : index
    attn.yield %in : i1
  }
}
// SM90: configs = [{{.*}}#attn.config<rows = 128, keys = 192, warps = 8, consumers = 2, q_in_registers = true, load = tma, turns = true>]
func.func @causal_tall(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x4x64xf16>, %ind: memref<?xi32>, %o: memref<?x4x64xf16>) {
  attn.attention @causal() q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x64xf16>, memref<?x4x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x64xf16>) {format = #attn.format<ragged>}
  return
}

// -----

// A window of 64 keys: wide tiles would be visited in vain. A hook that looks at positions keeps them in registers.
attn.variant @near() {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %d = arith.subi %k, %q : index
    %i = arith.index_cast %d : index to i32
    %f = arith.sitofp %i : i32 to f32
    %y = arith.addf %x, %f : f32
    attn.yield %y : f32
  }
  attn.hook mask (%at: !attn.coord) {
    %c = arith.constant 64 : index
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %past = arith.cmpi sle, %k, %q : index
    %d = arith.subi %q, %k : index
    %near = arith.cmpi slt, %d, %c : index
    %in = arith.andi %near, %past : i1
    attn.yield %in : i1
  }
}
// SM90: configs = [{{.*}}#attn.config<rows = 128, keys = 64, {{.*}}consumers = 2,{{.*}}]
func.func @window(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x4x64xf16>, %ind: memref<?xi32>, %o: memref<?x4x64xf16>) {
  attn.attention @near() q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x64xf16>, memref<?x4x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x64xf16>) {format = #attn.format<ragged>}
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
// SM90: configs = [#attn.config<rows = 16, {{[^>]*}}>, #attn.config<rows = 64, keys = 128, row_table = true, consumers = 1, q_in_registers = true, load = tma, peel = false>, #attn.config<rows = 128, keys = 128, warps = 8, consumers = 2, load = tma, peel = false>]
func.func @hook(%q: memref<?x4x128xf16>, %qo: memref<?xi32>, %k: memref<?x4x128xf16>, %ind: memref<?xi32>, %o: memref<?x4x128xf16>) {
  attn.attention @turned() q(%q, %qo : memref<?x4x128xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x128xf16>, memref<?x4x128xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x128xf16>) {format = #attn.format<ragged>}
  return
}

// -----

// SM90: configs = [{{.*}}#attn.config<rows = 64, keys = 128, {{.*}}consumers = 1, {{.*}}#attn.config<rows = 192, keys = 160, warps = 12, consumers = 3,
func.func @small(%q: memref<?x4x32xf16>, %qo: memref<?xi32>, %k: memref<?x4x32xf16>, %ind: memref<?xi32>, %o: memref<?x4x32xf16>) {
  attn.attention q(%q, %qo : memref<?x4x32xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x32xf16>, memref<?x4x32xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x32xf16>) {format = #attn.format<ragged>}
  return
}

// -----

// 136 columns take three panels of 64 in shared memory, so two stages of 128 keys do not fit beside 192 rows.
// SM90: configs = [{{.*}}#attn.config<rows = 64, keys = 128, {{.*}}consumers = 1, {{.*}}#attn.config<rows = 192, keys = 64, warps = 12, consumers = 3,
func.func @panels(%q: memref<?x4x136xf16>, %qo: memref<?xi32>, %k: memref<?x4x136xf16>, %ind: memref<?xi32>, %o: memref<?x4x136xf16>) {
  attn.attention q(%q, %qo : memref<?x4x136xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x136xf16>, memref<?x4x136xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x136xf16>) {format = #attn.format<ragged>}
  return
}

// -----

// SM90: configs = [{{.*}}#attn.config<rows = 64, keys = 128, {{.*}}consumers = 1, {{.*}}#attn.config<rows = 128, keys = 192, warps = 8, consumers = 2,
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

// -----

// Two bounded steps a logit: the copies of a block would be long, so one key loop takes blocks with and without the mask, except where rows are few.
attn.variant @long() {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    %0 = math.tanh %x : f32
    %1 = arith.addf %0, %x : f32
    %2 = math.tanh %1 : f32
    attn.yield %2 : f32
  }
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %in = arith.cmpi sle, %k, %q : index
    attn.yield %in : i1
  }
}
// SM90: configs = [#attn.config<rows = 16, keys = 128, groups = 4, row_table = true>, {{.*}}#attn.config<rows = 128, {{[^>]*}}, consumers = 2,{{[^>]*}}, peel = false>]
// SM80: configs = [{{.*}}#attn.config<rows = 128, keys = {{[0-9]+, warps = [0-9]+}}>]
func.func @copied(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x4x64xf16>, %ind: memref<?xi32>, %o: memref<?x4x64xf16>) {
  attn.attention @long() q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x64xf16>, memref<?x4x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x64xf16>) {format = #attn.format<ragged>}
  return
}
