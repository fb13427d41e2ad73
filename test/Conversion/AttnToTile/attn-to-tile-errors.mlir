// RUN: attn-opt %s --split-input-file --attn-to-tile --verify-diagnostics

func.func @no_configs(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x4x64xf16>, %ind: memref<?xi32>, %o: memref<?x4x64xf16>) {
  // expected-error @below {{has no 'configs'; run attn-select-config before attn-to-tile, or write them by hand}}
  attn.attention q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x64xf16>, memref<?x4x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x64xf16>) {format = #attn.format<ragged>}
  return
}

// -----

func.func @pack(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x2x64xf16>, %ind: memref<?xi32>, %o: memref<?x4x64xf16>) {
  // expected-error @below {{pack is 3, expected 1 or 2, the query heads of a KV head}}
  attn.attention q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x2x64xf16>, memref<?x2x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x64xf16>)
    {format = #attn.format<ragged>, configs = [#attn.config<rows = 16, keys = 64, pack = 3>]}
  return
}

// -----

func.func @groups(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x4x64xf16>, %ind: memref<?xi32>, %o: memref<?x4x64xf16>) {
  // expected-error @below {{64 keys do not divide into 3 groups}}
  attn.attention q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x64xf16>, memref<?x4x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x64xf16>)
    {format = #attn.format<ragged>, configs = [#attn.config<rows = 16, keys = 64, groups = 3>]}
  return
}

// -----

attn.variant @narrow_rope() {
  attn.hook key (%x: vector<64xf32>, %at: !attn.coord) {
    %p = attn.kv_pos %at
    // expected-error @below {{has rotary = 8, which cannot be lifted to tiles; expected a multiple of 16}}
    %y = attn.rope %x at %p {theta = 10000.0 : f64, rotary = 8 : i64} : vector<64xf32>
    attn.yield %y : vector<64xf32>
  }
}
func.func @lift(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x4x64xf16>, %ind: memref<?xi32>, %o: memref<?x4x64xf16>) {
  attn.attention @narrow_rope() q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x64xf16>, memref<?x4x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x64xf16>)
    {format = #attn.format<ragged>, configs = [#attn.config<rows = 16, keys = 64>]}
  return
}

// -----

attn.variant @branch() {
  attn.hook output (%x: vector<64xf32>, %at: !attn.coord) {
    %zero = arith.constant 0 : index
    %p = attn.q_pos %at
    %c = arith.cmpi eq, %p, %zero : index
    // expected-error @below {{cannot be lifted from head vectors to tiles; a head-vector hook is made of elementwise arith and math ops, vector.broadcast and attn.rope}}
    %y = scf.if %c -> vector<64xf32> {
      scf.yield %x : vector<64xf32>
    } else {
      %n = arith.negf %x : vector<64xf32>
      scf.yield %n : vector<64xf32>
    }
    attn.yield %y : vector<64xf32>
  }
}
func.func @lift_branch(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x4x64xf16>, %ind: memref<?xi32>, %o: memref<?x4x64xf16>) {
  attn.attention @branch() q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x64xf16>, memref<?x4x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x64xf16>)
    {format = #attn.format<ragged>, configs = [#attn.config<rows = 16, keys = 64>]}
  return
}
