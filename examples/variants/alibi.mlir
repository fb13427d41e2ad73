// RUN: attn-opt %s | attn-opt
// RUN: attn-run %s --batch=%S/Inputs/alibi.json --device=cpu --check

// ALiBi: slope[head] * (key position - query position) is added to the logit. `first_head` is the first global head
// of this rank under tensor parallelism: slopes belong to global heads.

attn.variant @alibi(%slopes: memref<?xf32>, %first_head: index) {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    %h = attn.q_head %at
    %global = arith.addi %h, %first_head : index
    %slope = memref.load %slopes[%global] : memref<?xf32>
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %d = arith.subi %k, %q : index
    %di = arith.index_cast %d : index to i32
    %df = arith.sitofp %di : i32 to f32
    %y = math.fma %slope, %df, %x : f32
    attn.yield %y : f32
  }
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %in = arith.cmpi sle, %k, %q : index
    attn.yield %in : i1
  }
}

func.func @attend(%q: memref<?x12x64xbf16>, %qo_indptr: memref<?xi32>, %k: memref<?x16x12x64xbf16>,
                  %v: memref<?x16x12x64xbf16>, %kv_indptr: memref<?xi32>, %kv_indices: memref<?xi32>,
                  %last_page_len: memref<?xi32>, %o: memref<?x12x64xbf16>, %lse: memref<?x12xf32>,
                  %slopes: memref<?xf32>, %first_head: index) {
  attn.attention @alibi(%slopes, %first_head : memref<?xf32>, index)
    q(%q, %qo_indptr : memref<?x12x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x12x64xbf16>, memref<?x16x12x64xbf16>)
    indptr(%kv_indptr : memref<?xi32>) indices(%kv_indices : memref<?xi32>) last(%last_page_len : memref<?xi32>)
    outs(%o : memref<?x12x64xbf16>, %lse : memref<?x12xf32>) {format = #attn.format<paged>}
  return
}
