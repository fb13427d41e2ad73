// RUN: attn-opt %s -split-input-file -verify-diagnostics

// variant_c1
// expected-error@+1 {{parameter 0 must be f32, index, or a memref of rank 1 or more with a contiguous last dimension and element type f32, f16, bf16, i8, i32 or i64, got 'f64' [variant_c1]}}
attn.variant @v(%x: f64) {
}

// -----

// variant_c1: buffers
// expected-error@+1 {{got 'memref<?xf64>' [variant_c1]}}
attn.variant @v(%x: memref<?xf64>) {
}

// -----

// variant_c2
attn.variant @v(%x: f32) {
  // expected-error@+1 {{'arith.addf' op is not allowed here: the body of attn.variant holds attn.hook and arith.constant; move it into a hook [variant_c2]}}
  %0 = arith.addf %x, %x : f32
}

// -----

// variant_c3
attn.variant @v() {
  // expected-note@+1 {{the first is here}}
  attn.hook sink (%at: !attn.coord) {
    %0 = arith.constant 0.0 : f32
    attn.yield %0 : f32
  }
  // expected-error@+1 {{a variant has at most one sink hook [variant_c3]}}
  attn.hook sink (%at: !attn.coord) {
    %0 = arith.constant 0.0 : f32
    attn.yield %0 : f32
  }
}

// -----

// variant_c4
attn.variant @v() normalizer(none) {
  // expected-error@+1 {{a sink needs normalizer softmax: without it there is no denominator to add to [variant_c4]}}
  attn.hook sink (%at: !attn.coord) {
    %0 = arith.constant 0.0 : f32
    attn.yield %0 : f32
  }
}

// -----

// variant_c5
// expected-error@+1 {{'param_names' must be one name per parameter, each different, got ["a", "a"] [variant_c5]}}
"attn.variant"() <{sym_name = "v", normalizer = 0 : i32}> ({
^bb0(%a: f32, %b: f32):
}) {param_names = ["a", "a"]} : () -> ()

// -----

// syntax: normalizer
// expected-error@+1 {{unknown normalizer 'l2', expected softmax or none}}
attn.variant @v() normalizer(l2) {
}

// -----

// syntax: hook
attn.variant @v() {
  // expected-error@+1 {{unknown hook 'keys', expected query, key, value, logits, mask, sink or output}}
  attn.hook keys (%at: !attn.coord) {
  }
}

// -----

// syntax: attributes
// expected-error@+1 {{attribute 'sym_name' is given by the syntax already}}
attn.variant @v() attributes {sym_name = "w"} {
}

// -----

// hook_c1: query
attn.variant @v() {
  %z = arith.constant 0.0 : f32
  // expected-error@+1 {{a query hook is (vector<Dxf32>, !attn.coord) -> vector<Dxf32> [hook_c1]}}
  attn.hook query (%x: f32, %at: !attn.coord) {
    attn.yield %z : f32
  }
}

// -----

// hook_c1: logits
attn.variant @v() {
  %z = arith.constant 0.0 : f32
  // expected-error@+1 {{a logits hook is (f32, !attn.coord) -> f32 [hook_c1]}}
  attn.hook logits (%at: !attn.coord) {
    attn.yield %z : f32
  }
}

// -----

// hook_c1: mask
attn.variant @v() {
  %z = arith.constant 0.0 : f32
  // expected-error@+1 {{a mask hook is (!attn.coord) -> i1 [hook_c1]}}
  attn.hook mask (%x: f32, %at: !attn.coord) {
    attn.yield %z : f32
  }
}

// -----

// hook_c1: sink
attn.variant @v() {
  %z = arith.constant 0.0 : f32
  // expected-error@+1 {{a sink hook is (!attn.coord) -> f32 [hook_c1]}}
  attn.hook sink (%x: f32) {
    attn.yield %z : f32
  }
}

// -----

// hook_c1: head vectors have rank 1
attn.variant @v() {
  // expected-error@+1 {{a key hook is (vector<Dxf32>, !attn.coord) -> vector<Dxf32> [hook_c1]}}
  attn.hook key (%x: vector<8x8xf32>, %at: !attn.coord) {
    attn.yield %x : vector<8x8xf32>
  }
}

// -----

// hook_c2
attn.variant @v() {
  attn.hook mask (%at: !attn.coord) {
    %0 = arith.constant 1.0 : f32
    // expected-error@+1 {{a mask hook yields 'i1', got 'f32' [hook_c2]}}
    attn.yield %0 : f32
  }
}

// -----

// hook_c2: no yield
attn.variant @v() {
  // expected-error@+1 {{must end in attn.yield [hook_c2]}}
  attn.hook mask (%at: !attn.coord) {
    llvm.unreachable
  }
}

// -----

// hook_c3: powf
attn.variant @v() {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    // expected-error@+1 {{'math.powf' op is not on the closed list of ops that a hook may use; write math.exp2(y * math.log2(x)) [hook_c3]}}
    %0 = math.powf %x, %x : f32
    attn.yield %x : f32
  }
}

// -----

// hook_c3: erf
attn.variant @v() {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    // expected-error@+1 {{'math.erf' op is not on the closed list of ops that a hook may use [hook_c3]}}
    %0 = math.erf %x : f32
    attn.yield %x : f32
  }
}

// -----

// hook_c3: remf
attn.variant @v() {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    // expected-error@+1 {{'arith.remf' op is not on the closed list of ops that a hook may use; write x - y * math.floor(x / y) [hook_c3]}}
    %0 = arith.remf %x, %x : f32
    attn.yield %x : f32
  }
}

// -----

// hook_c3: floordivsi
attn.variant @v() {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    // expected-error@+1 {{'arith.floordivsi' op is not on the closed list of ops that a hook may use; write it with the integer ops of the list [hook_c3]}}
    %k = attn.kv_pos %at %0 = arith.floordivsi %k, %k : index
    attn.yield %x : f32
  }
}

// -----

// hook_c3: store
attn.variant @v(%m: memref<?xf32>, %i: index) {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    // expected-error@+1 {{'memref.store' op is not on the closed list of ops that a hook may use; a hook has no side effects [hook_c3]}}
    memref.store %x, %m[%i] : memref<?xf32>
    attn.yield %x : f32
  }
}

// -----

// hook_c3: reduction
attn.variant @v() {
  attn.hook key (%x: vector<64xf32>, %at: !attn.coord) {
    // expected-error@+1 {{'vector.reduction' op is not on the closed list of ops that a hook may use; head vectors are worked on element by element [hook_c3]}}
    %0 = vector.reduction <add>, %x : vector<64xf32> into f32
    attn.yield %x : vector<64xf32>
  }
}

// -----

// hook_c3: call
attn.variant @v() {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    // expected-error@+1 {{'func.call' op is not on the closed list of ops that a hook may use [hook_c3]}}
    func.call @g() : () -> ()
    attn.yield %x : f32
  }
}

// -----

// hook_c4: a chosen buffer
attn.variant @v(%m: memref<?xf32>) {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    // expected-error@+1 {{got 'memref<?xf32>' [hook_c4]}}
    %t = arith.constant true %0 = arith.select %t, %m, %m : memref<?xf32>
    attn.yield %x : f32
  }
}

// -----

// hook_c4: f64
attn.variant @v() {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    // expected-error@+1 {{a hook works on f32, f16, bf16, i1, i8, i16, i32, i64, index and vectors of rank 1 of these, got 'f64' [hook_c4]}}
    %0 = arith.extf %x : f32 to f64
    attn.yield %x : f32
  }
}

// -----

// hook_c4: 16-bit arithmetic
attn.variant @v() {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    // expected-error@+1 {{a hook computes in f32; extend the 'f16' with arith.extf first [hook_c4]}}
    %h = arith.truncf %x : f32 to f16 %0 = arith.addf %h, %h : f16
    attn.yield %x : f32
  }
}

// -----

// hook_c5: key
attn.variant @v() {
  attn.hook key (%x: vector<64xf32>, %at: !attn.coord) {
    // expected-error@+1 {{a key hook has no query: it runs once for all queries of a key; use kv_pos, kv_head, request, kv_len or qo_len [hook_c5]}}
    %0 = attn.q_pos %at
    attn.yield %x : vector<64xf32>
  }
}

// -----

// hook_c5: query
attn.variant @v() {
  attn.hook query (%x: vector<64xf32>, %at: !attn.coord) {
    // expected-error@+1 {{a query hook has no key: it runs once for all keys of a query; use q_pos, row, q_head, kv_head, request, kv_len or qo_len [hook_c5]}}
    %0 = attn.kv_pos %at
    attn.yield %x : vector<64xf32>
  }
}

// -----

// hook_c6
attn.variant @v() {
  attn.hook key (%x: vector<64xf32>, %at: !attn.coord) {
    %i = attn.kv_pos %at
    %c = arith.cmpi eq, %i, %i : index
    %y = scf.if %c -> vector<64xf32> {
      // expected-error@+1 {{'attn.rope' op may not be inside scf.if: choose the position instead [hook_c6]}}
      %r = attn.rope %x at %i {theta = 1.0e4} : vector<64xf32>
      scf.yield %r : vector<64xf32>
    } else {
      scf.yield %x : vector<64xf32>
    }
    attn.yield %y : vector<64xf32>
  }
}

// -----

// hook_c6: logits
attn.variant @v() {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    // expected-error@+1 {{'attn.rope' op is for query, key, value and output hooks [hook_c6]}}
    %w = vector.broadcast %x : f32 to vector<64xf32> %i = attn.kv_pos %at %0 = attn.rope %w at %i {theta = 1.0e4} : vector<64xf32>
    attn.yield %x : f32
  }
}

// -----

// hook_c7
attn.variant @v() {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    // expected-error@+1 {{a vector constant in a hook must be a splat; pass a table as a buffer parameter [hook_c7]}}
    %0 = arith.constant dense<[1.0, 2.0]> : vector<2xf32>
    attn.yield %x : f32
  }
}

// -----

// rope_c1
func.func @f(%x: vector<64xf16>, %i: index) {
  // expected-error@+1 {{'value' must be a vector of rank 1 of f32, got 'vector<64xf16>' [rope_c1]}}
  %0 = attn.rope %x at %i {theta = 1.0e4} : vector<64xf16>
  return
}

// -----

// rope_c2
func.func @f(%x: vector<64xf32>, %i: index) {
  // expected-error@+1 {{'rotary' must be even, at least 2 and at most the head dim 64, got 66 [rope_c2]}}
  %0 = attn.rope %x at %i {theta = 1.0e4, rotary = 66} : vector<64xf32>
  return
}

// -----

// rope_c2: odd
func.func @f(%x: vector<64xf32>, %i: index) {
  // expected-error@+1 {{'rotary' must be even, at least 2 and at most the head dim 64, got 3 [rope_c2]}}
  %0 = attn.rope %x at %i {theta = 1.0e4, rotary = 3} : vector<64xf32>
  return
}

// -----

// rope_c3
func.func @f(%x: vector<64xf32>, %i: index) {
  // expected-error@+1 {{'theta' and 'factor' must be finite and above 0 [rope_c3]}}
  %0 = attn.rope %x at %i {theta = 0.0} : vector<64xf32>
  return
}

// -----

// rope_c4
func.func @f(%x: vector<64xf32>, %i: index) {
  // expected-error@+1 {{'low_freq', 'high_freq' and 'original' come together, above 0 and with low_freq below high_freq [rope_c4]}}
  %0 = attn.rope %x at %i {theta = 1.0e4, low_freq = 1.0} : vector<64xf32>
  return
}
