// RUN: attn-opt %s --split-input-file --attn-select-config --verify-diagnostics

// Configs written by hand are kept, and refused when they do not fit, with the number that is missing.
func.func @shared(%q: memref<?x4x128xf16>, %qo: memref<?xi32>, %k: memref<?x4x128xf16>, %ind: memref<?xi32>, %o: memref<?x4x128xf16>) {
  // expected-error @below {{needs 164864 bytes of shared memory, sm_86 has 101376, 63488 too few; use fewer keys, stages or rows}}
  attn.attention q(%q, %qo : memref<?x4x128xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x128xf16>, memref<?x4x128xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x128xf16>)
    {format = #attn.format<ragged>, target = #attn.target<"sm_86">, configs = [#attn.config<rows = 128, keys = 128, warps = 8>]}
  return
}

// -----

func.func @registers(%q: memref<?x4x256xf16>, %qo: memref<?xi32>, %k: memref<?x4x256xf16>, %ind: memref<?xi32>, %o: memref<?x4x256xf16>) {
  // expected-error @below {{needs about 336 registers a thread, sm_80 has 255, 81 too few; use fewer keys or rows, or more warps}}
  attn.attention q(%q, %qo : memref<?x4x256xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x256xf16>, memref<?x4x256xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x256xf16>)
    {format = #attn.format<ragged>, target = #attn.target<"sm_80">, configs = [#attn.config<rows = 128, keys = 32, stages = 1, warps = 4>]}
  return
}

// -----

func.func @chip(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x4x64xf16>, %ind: memref<?xi32>, %o: memref<?x4x64xf16>) {
  // expected-error @below {{target 'sm_12' is not known; expected one of host, sm_80}}
  attn.attention q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x64xf16>, memref<?x4x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x64xf16>) {format = #attn.format<ragged>, target = #attn.target<"sm_12">}
  return
}

// -----

func.func @shape(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x4x64xf16>, %ind: memref<?xi32>, %o: memref<?x4x64xf16>) {
  // expected-error @below {{rows and the keys of a group must be multiples of 16 on sm_80, got 16 and 8}}
  attn.attention q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x64xf16>, memref<?x4x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x64xf16>)
    {format = #attn.format<ragged>, target = #attn.target<"sm_80">, configs = [#attn.config<rows = 16, keys = 32, groups = 4>]}
  return
}

// -----

func.func @warps(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x4x64xf16>, %ind: memref<?xi32>, %o: memref<?x4x64xf16>) {
  // expected-error @below {{8 warps of 16 rows do not divide 64 rows}}
  attn.attention q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x64xf16>, memref<?x4x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x64xf16>)
    {format = #attn.format<ragged>, target = #attn.target<"sm_80">, configs = [#attn.config<rows = 64, keys = 64, warps = 8>]}
  return
}

// -----

func.func @wgmma(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x4x64xf16>, %ind: memref<?xi32>, %o: memref<?x4x64xf16>) {
  // expected-error @below {{sm_80 has no warpgroup products; use consumers = 0 and load = gather}}
  attn.attention q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x64xf16>, memref<?x4x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x64xf16>)
    {format = #attn.format<ragged>, target = #attn.target<"sm_80">, configs = [#attn.config<rows = 64, keys = 64, consumers = 1>]}
  return
}

// -----

func.func @counter(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x4x64xf16>, %ind: memref<?xi32>, %o: memref<?x4x64xf16>) {
  // expected-error @below {{no kernel takes its items from a counter yet; use order = list}}
  attn.attention q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x64xf16>, memref<?x4x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x64xf16>)
    {format = #attn.format<ragged>, target = #attn.target<"sm_80">, configs = [#attn.config<rows = 64, keys = 64, order = counter>]}
  return
}

// -----

func.func @tma(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x4x64xf16>, %ind: memref<?xi32>, %o: memref<?x4x64xf16>) {
  // expected-error @below {{sm_80 has no tensor copies; use load = gather}}
  attn.attention q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x64xf16>, memref<?x4x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x64xf16>)
    {format = #attn.format<ragged>, target = #attn.target<"sm_80">, configs = [#attn.config<rows = 64, keys = 64, load = tma>]}
  return
}

// -----

func.func @large(%q: memref<?x1x512xf16>, %qo: memref<?xi32>, %k: memref<?x1x512xf16>, %ind: memref<?xi32>, %o: memref<?x1x512xf16>) {
  // expected-error @below {{no tile class fits head dims 512 and 512 on sm_80; write 'configs' by hand to see by how much}}
  attn.attention q(%q, %qo : memref<?x1x512xf16>, memref<?xi32>) kv(%k, %k : memref<?x1x512xf16>, memref<?x1x512xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x1x512xf16>) {format = #attn.format<ragged>, target = #attn.target<"sm_80">}
  return
}

// -----

func.func @few(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x4x64xf16>, %ind: memref<?xi32>, %o: memref<?x4x64xf16>) {
  // expected-error @below {{16 rows are not whole warpgroups of 64; use consumers = 0 and load = gather}}
  attn.attention q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x64xf16>, memref<?x4x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x64xf16>)
    {format = #attn.format<ragged>, target = #attn.target<"sm_90a">, configs = [#attn.config<rows = 16, keys = 64, warps = 1, consumers = 1, load = tma>]}
  return
}

// -----

func.func @dim(%q: memref<?x4x512xf16>, %qo: memref<?xi32>, %k: memref<?x4x512xf16>, %ind: memref<?xi32>, %o: memref<?x4x512xf16>) {
  // expected-error @below {{head dim 512 is more than the 256 columns of a warpgroup's product; use consumers = 0 and load = gather}}
  attn.attention q(%q, %qo : memref<?x4x512xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x512xf16>, memref<?x4x512xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x512xf16>)
    {format = #attn.format<ragged>, target = #attn.target<"sm_90a">, configs = [#attn.config<rows = 128, keys = 128, warps = 8, consumers = 2, load = tma>]}
  return
}

// -----

func.func @bytes(%q: memref<?x4x40xf16>, %qo: memref<?xi32>, %k: memref<?x4x40xf8E4M3FN>, %ind: memref<?xi32>, %o: memref<?x4x40xf16>) {
  // expected-error @below {{rows of 40 bytes are not whole 16 bytes, which tensor copies want; use consumers = 0 and load = gather}}
  attn.attention q(%q, %qo : memref<?x4x40xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x40xf8E4M3FN>, memref<?x4x40xf8E4M3FN>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x40xf16>)
    {format = #attn.format<ragged>, target = #attn.target<"sm_90a">, configs = [#attn.config<rows = 128, keys = 128, warps = 8, consumers = 2, load = tma>]}
  return
}

// -----

func.func @split(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x4x64xf16>, %ind: memref<?xi32>, %o: memref<?x4x64xf16>) {
  // expected-error @below {{consumers do not split keys into groups; use groups = 1 or consumers = 0}}
  attn.attention q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x64xf16>, memref<?x4x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x64xf16>)
    {format = #attn.format<ragged>, target = #attn.target<"sm_90a">, configs = [#attn.config<rows = 128, keys = 128, warps = 16, groups = 2, consumers = 2, load = tma>]}
  return
}

// -----

func.func @shares(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x4x64xf16>, %ind: memref<?xi32>, %o: memref<?x4x64xf16>) {
  // expected-error @below {{2 consumers of 4 warps and 128 rows in 64s, got 4 warps; use 2 consumers and 8 warps}}
  attn.attention q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x64xf16>, memref<?x4x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x64xf16>)
    {format = #attn.format<ragged>, target = #attn.target<"sm_90a">, configs = [#attn.config<rows = 128, keys = 64, warps = 4, consumers = 2, load = tma>]}
  return
}

// -----

func.func @turns(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x4x64xf16>, %ind: memref<?xi32>, %o: memref<?x4x64xf16>) {
  // expected-error @below {{turns are between consumers; use turns = false or consumers > 1}}
  attn.attention q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x64xf16>, memref<?x4x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x64xf16>)
    {format = #attn.format<ragged>, target = #attn.target<"sm_90a">, configs = [#attn.config<rows = 64, keys = 64, warps = 4, consumers = 1, load = tma, turns = true>]}
  return
}

// -----

func.func @alone(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x4x64xf16>, %ind: memref<?xi32>, %o: memref<?x4x64xf16>) {
  // expected-error @below {{tensor copies are issued for consumers; use consumers > 0 or load = gather}}
  attn.attention q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x64xf16>, memref<?x4x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x64xf16>)
    {format = #attn.format<ragged>, target = #attn.target<"sm_90a">, configs = [#attn.config<rows = 64, keys = 64, load = tma>]}
  return
}

// -----

func.func @blocks5(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x5x4x64xf16>, %ind: memref<?xi32>, %idx: memref<?xi32>, %last: memref<?xi32>, %o: memref<?x4x64xf16>) {
  // expected-error @below {{column blocks of 5 keys are not whole groups of 8 rows; use consumers = 0 and load = gather}}
  attn.attention q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x5x4x64xf16>, memref<?x5x4x64xf16>)
    indptr(%ind : memref<?xi32>) indices(%idx : memref<?xi32>) last(%last : memref<?xi32>) outs(%o : memref<?x4x64xf16>)
    {format = #attn.format<bsr, row_block = 128>, target = #attn.target<"sm_90a">, configs = [#attn.config<rows = 128, keys = 128, warps = 8, consumers = 2, load = tma>]}
  return
}

// -----

func.func @blocks24(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x24x4x64xf16>, %ind: memref<?xi32>, %idx: memref<?xi32>, %last: memref<?xi32>, %o: memref<?x4x64xf16>) {
  // expected-error @below {{column blocks of 24 keys and tiles of 128 do not divide one another; use consumers = 0 and load = gather}}
  attn.attention q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x24x4x64xf16>, memref<?x24x4x64xf16>)
    indptr(%ind : memref<?xi32>) indices(%idx : memref<?xi32>) last(%last : memref<?xi32>) outs(%o : memref<?x4x64xf16>)
    {format = #attn.format<bsr, row_block = 128>, target = #attn.target<"sm_90a">, configs = [#attn.config<rows = 128, keys = 128, warps = 8, consumers = 2, load = tma>]}
  return
}
