// RUN: attn-opt %s --tile-stream-items --split-input-file --verify-diagnostics

// What tile-warp-specialize makes, changed into what cannot be a stream.
// RUN: attn-opt %S/Inputs/hopper.mlir --tile-assign-layouts --tile-reverse-keys --tile-skew-dots --tile-warp-specialize -o %t.roles
// RUN: not attn-opt %t.roles --tile-stream-items --tile-stream-items 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: {{.*}}has consumers without tile.for_each: its items are a stream already
// RUN: sed -e 's/<3 x !tile.smem<32x32xbf16, #tile.swizzle<64, panel = 32>>>/<3 x !tile.smem<32x32xbf16, #tile.swizzle<64, panel = 32>>, words = 1>/; s/\(.slot\) = tile.consumer_wait/\1, %word = tile.consumer_wait/' %t.roles | not attn-opt --tile-stream-items 2>&1 | FileCheck %s --check-prefix=WORDS
// WORDS: error: {{.*}}has words or a chain already
// RUN: sed -e '/@query /s/$/\ntile.for_each (%none = rows) in %arg8 {\n}/' %t.roles | not attn-opt --tile-stream-items 2>&1 | FileCheck %s --check-prefix=LOADS
// LOADS: error: {{.*}}waits for a tile that no role loads in its tile.for_each

// A second tile once an item.
// RUN: sed -e 's/^ *%1 = tile.pipeline \(.*\)/&\n%more = tile.pipeline \1/; s/^ *tile.load_async %4\(.*\) into %5 signal %1 : \([^,]*\),.*/&\n%ms = tile.producer_acquire %more : !q -> !t\ntile.load_async %4\1 into %ms signal %more : \2, !t, !q/; s/^ *.slot = tile.consumer_wait.*/&\n%mw = tile.consumer_wait %more : !q\ntile.consumer_release %more : !q/; 1i !t = !tile.smem<32x32xbf16, #tile.swizzle<64, panel = 32>>\n!q = !tile.pipeline<3 x !t>' %t.roles | not attn-opt --tile-stream-items 2>&1 | FileCheck %s --check-prefix=SECOND
// SECOND: error: {{.*}}waits for a second tile that is loaded once an item, expected the query tile only

// expected-error @+1 {{is of level logical, expected level specialized: run tile-warp-specialize first}}
tile.kernel @level() attributes {level = #tile.level<logical>} {
  tile.return
}

// -----
// expected-error @+1 {{has no role that loads and another that multiplies}}
tile.kernel @roles() attributes {level = #tile.level<specialized>} {
  tile.return
}

// -----

#acc = #tile.mma<warps = [4, 1]>
!t = !tile.smem<64x64xbf16, #tile.swizzle<128, panel = 64>>
!p = !tile.pipeline<1 x !t>
!m = memref<?x8x64xbf16, strided<[?, ?, 1]>>
!s = !tile.reg<64x64xf32, #acc>
tile.kernel @no_loop(%k: !m {tile.arg = "k"}, %items: !tile.items {tile.arg = "items"}) attributes {level = #tile.level<specialized>} {
  %c0 = arith.constant 0 : index
  %p = tile.pipeline : !p
  tile.roles {
    tile.role @producer warps(1) {
      tile.for_each (%rows = rows) in %items {
        %kv = tile.view %k[%c0, %c0] rows(%rows) : !m -> !tile.view<?x64xbf16>
        %s = tile.producer_acquire %p : !p -> !t
        tile.load_async %kv[%c0] into %s signal %p : !tile.view<?x64xbf16>, !t, !p
      }
    }
    tile.role @consumer warps(4) {
      // expected-error @+1 {{has no loop of products to stream}}
      tile.for_each (%rows = rows) in %items {
        %k0 = tile.consumer_wait %p : !p
        %d = tile.dot_async %k0, %k0 transpose_b : (!t, !t) -> !tile.pending<!s>
        %r = tile.await %d : !tile.pending<!s> -> !s
        tile.consumer_release %p : !p
      }
    }
  }
}
