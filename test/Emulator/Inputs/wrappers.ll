declare i32 @rt_tid()
declare i32 @rt_ctaid()
declare void @rt_barrier()
declare void @rt_warp_barrier()
declare i32 @rt_shuffle(i32, i32, i32, i32)
declare void @rt_ldmatrix(ptr, ptr, i32, i32)
declare void @rt_mma(ptr, ptr, ptr, ptr, i32)
declare void @rt_cp_async(ptr, ptr, i32)
declare void @rt_commit()
declare void @rt_wait_group(i32)
declare float @rt_ex2(float)
declare float @rt_lg2(float)
declare float @rt_sin(float)
declare float @rt_cos(float)
declare i32 @rt_pack(float, float, i32)
declare i32 @rt_e4m3(i32)
declare void @rt_cp_async8(ptr, ptr, i32)
declare void @rt_barrier_init(ptr, i32)
declare void @rt_arrive(ptr)
declare void @rt_arrive_later(ptr)
declare void @rt_try_wait(ptr, i32)
declare i32 @rt_vote_all(i32)

define void @nvvm_mbarrier_init_shared(ptr %b, i32 %n) {
  call void @rt_barrier_init(ptr %b, i32 %n)
  ret void
}
define void @nvvm_fence_mbarrier_init_release_cluster() {
  ret void
}
define void @nvvm_cp_async_mbarrier_arrive_noinc_shared(ptr %b) {
  call void @rt_arrive_later(ptr %b)
  ret void
}
define void @asm_arrive(ptr %b, i1 %mine) {
  br i1 %mine, label %yes, label %no
yes:
  call void @rt_arrive(ptr %b)
  br label %no
no:
  ret void
}
define void @asm_try_wait(ptr %b, i32 %parity, i32 %ticks) {
  call void @rt_try_wait(ptr %b, i32 %parity)
  ret void
}
define i1 @nvvm_vote_all_sync(i32 %m, i1 %v) {
  %w = zext i1 %v to i32
  %a = call i32 @rt_vote_all(i32 %w)
  %r = trunc i32 %a to i1
  ret i1 %r
}
define void @nvvm_cp_async_cg_shared_global_16(ptr %to, ptr %from) {
  call void @rt_cp_async(ptr %to, ptr %from, i32 16)
  ret void
}
define void @nvvm_cp_async_ca_shared_global_8(ptr %to, ptr %from) {
  call void @rt_cp_async8(ptr %to, ptr %from, i32 8)
  ret void
}

define i32 @nvvm_read_ptx_sreg_tid_x() {
  %r = call i32 @rt_tid()
  ret i32 %r
}
define i32 @nvvm_read_ptx_sreg_ctaid_x() {
  %r = call i32 @rt_ctaid()
  ret i32 %r
}
define void @nvvm_barrier_cta_sync_aligned_all(i32 %id) {
  call void @rt_barrier()
  ret void
}
define void @nvvm_bar_warp_sync(i32 %mask) {
  call void @rt_warp_barrier()
  ret void
}
define i32 @nvvm_shfl_sync_idx_i32(i32 %m, i32 %v, i32 %l, i32 %c) {
  %own = lshr i32 %c, 8
  %r = call i32 @rt_shuffle(i32 %v, i32 %l, i32 0, i32 %own)
  ret i32 %r
}
define i32 @nvvm_shfl_sync_bfly_i32(i32 %m, i32 %v, i32 %l, i32 %c) {
  %r = call i32 @rt_shuffle(i32 %v, i32 %l, i32 1, i32 0)
  ret i32 %r
}
define float @nvvm_shfl_sync_bfly_f32(i32 %m, float %v, i32 %l, i32 %c) {
  %b = bitcast float %v to i32
  %r = call i32 @rt_shuffle(i32 %b, i32 %l, i32 1, i32 0)
  %f = bitcast i32 %r to float
  ret float %f
}
define void @nvvm_cp_async_cg_shared_global_16_s(ptr %to, ptr %from, i32 %bytes) {
  call void @rt_cp_async(ptr %to, ptr %from, i32 %bytes)
  ret void
}
define void @nvvm_cp_async_ca_shared_global_8_s(ptr %to, ptr %from, i32 %bytes) {
  call void @rt_cp_async8(ptr %to, ptr %from, i32 %bytes)
  ret void
}
define <2 x half> @nvvm_e4m3x2_to_f16x2_rn(i16 %pair) {
  %w = zext i16 %pair to i32
  %r = call i32 @rt_e4m3(i32 %w)
  %v = bitcast i32 %r to <2 x half>
  ret <2 x half> %v
}
define void @nvvm_cp_async_commit_group() {
  call void @rt_commit()
  ret void
}
define void @nvvm_cp_async_wait_group(i32 %n) {
  call void @rt_wait_group(i32 %n)
  ret void
}
define float @nvvm_ex2_approx_ftz_f32(float %x) {
  %r = call float @rt_ex2(float %x)
  ret float %r
}
define float @asm_rcp(float %x) {
  %r = fdiv float 1.0, %x
  ret float %r
}
define float @asm_lg2(float %x) {
  %r = call float @rt_lg2(float %x)
  ret float %r
}
define float @asm_sin(float %x) {
  %r = call float @rt_sin(float %x)
  ret float %r
}
define float @asm_cos(float %x) {
  %r = call float @rt_cos(float %x)
  ret float %r
}
define i32 @asm_mov(i32 %x) {
  ret i32 %x
}
define <2 x bfloat> @nvvm_ff2bf16x2_rn(float %h, float %l) {
  %r = call i32 @rt_pack(float %h, float %l, i32 1)
  %v = bitcast i32 %r to <2 x bfloat>
  ret <2 x bfloat> %v
}
define <2 x half> @nvvm_ff2f16x2_rn(float %h, float %l) {
  %r = call i32 @rt_pack(float %h, float %l, i32 0)
  %v = bitcast i32 %r to <2 x half>
  ret <2 x half> %v
}
define bfloat @round_bf16(float %x) {
  %r = call i32 @rt_pack(float 0.0, float %x, i32 1)
  %t = trunc i32 %r to i16
  %b = bitcast i16 %t to bfloat
  ret bfloat %b
}
define { i32, i32, i32, i32 } @ldmatrix4(ptr %p, i32 %t) {
  %b = alloca [4 x i32]
  call void @rt_ldmatrix(ptr %p, ptr %b, i32 4, i32 %t)
  %r = load { i32, i32, i32, i32 }, ptr %b
  ret { i32, i32, i32, i32 } %r
}
define { i32, i32 } @ldmatrix2(ptr %p, i32 %t) {
  %b = alloca [2 x i32]
  call void @rt_ldmatrix(ptr %p, ptr %b, i32 2, i32 %t)
  %r = load { i32, i32 }, ptr %b
  ret { i32, i32 } %r
}
define { i32, i32, i32, i32 } @nvvm_ldmatrix_sync_aligned_m8n8_x4_b16_p3(ptr %p) {
  %r = call { i32, i32, i32, i32 } @ldmatrix4(ptr %p, i32 0)
  ret { i32, i32, i32, i32 } %r
}
define { i32, i32, i32, i32 } @nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16_p3(ptr %p) {
  %r = call { i32, i32, i32, i32 } @ldmatrix4(ptr %p, i32 1)
  ret { i32, i32, i32, i32 } %r
}
define { i32, i32 } @nvvm_ldmatrix_sync_aligned_m8n8_x2_b16_p3(ptr %p) {
  %r = call { i32, i32 } @ldmatrix2(ptr %p, i32 0)
  ret { i32, i32 } %r
}
define { i32, i32 } @nvvm_ldmatrix_sync_aligned_m8n8_x2_trans_b16_p3(ptr %p) {
  %r = call { i32, i32 } @ldmatrix2(ptr %p, i32 1)
  ret { i32, i32 } %r
}
define { float, float, float, float } @mma(i32 %a0, i32 %a1, i32 %a2, i32 %a3, i32 %b0, i32 %b1, float %c0, float %c1, float %c2, float %c3, i32 %bf16) {
  %a = alloca [4 x i32]
  %b = alloca [2 x i32]
  %c = alloca [4 x float]
  %d = alloca [4 x float]
  %ai = insertvalue [4 x i32] poison, i32 %a0, 0
  %aj = insertvalue [4 x i32] %ai, i32 %a1, 1
  %ak = insertvalue [4 x i32] %aj, i32 %a2, 2
  %al = insertvalue [4 x i32] %ak, i32 %a3, 3
  store [4 x i32] %al, ptr %a
  %bi = insertvalue [2 x i32] poison, i32 %b0, 0
  %bj = insertvalue [2 x i32] %bi, i32 %b1, 1
  store [2 x i32] %bj, ptr %b
  %ci = insertvalue [4 x float] poison, float %c0, 0
  %cj = insertvalue [4 x float] %ci, float %c1, 1
  %ck = insertvalue [4 x float] %cj, float %c2, 2
  %cl = insertvalue [4 x float] %ck, float %c3, 3
  store [4 x float] %cl, ptr %c
  call void @rt_mma(ptr %a, ptr %b, ptr %c, ptr %d, i32 %bf16)
  %r = load { float, float, float, float }, ptr %d
  ret { float, float, float, float } %r
}
define { float, float, float, float } @nvvm_mma_m16n8k16_row_col_bf16(i32 %a0, i32 %a1, i32 %a2, i32 %a3, i32 %b0, i32 %b1, float %c0, float %c1, float %c2, float %c3) {
  %r = call { float, float, float, float } @mma(i32 %a0, i32 %a1, i32 %a2, i32 %a3, i32 %b0, i32 %b1, float %c0, float %c1, float %c2, float %c3, i32 1)
  ret { float, float, float, float } %r
}
define { float, float, float, float } @nvvm_mma_m16n8k16_row_col_f32_f32(<2 x half> %a0, <2 x half> %a1, <2 x half> %a2, <2 x half> %a3, <2 x half> %b0, <2 x half> %b1, float %c0, float %c1, float %c2, float %c3) {
  %i0 = bitcast <2 x half> %a0 to i32
  %i1 = bitcast <2 x half> %a1 to i32
  %i2 = bitcast <2 x half> %a2 to i32
  %i3 = bitcast <2 x half> %a3 to i32
  %j0 = bitcast <2 x half> %b0 to i32
  %j1 = bitcast <2 x half> %b1 to i32
  %r = call { float, float, float, float } @mma(i32 %i0, i32 %i1, i32 %i2, i32 %i3, i32 %j0, i32 %j1, float %c0, float %c1, float %c2, float %c3, i32 0)
  ret { float, float, float, float } %r
}
